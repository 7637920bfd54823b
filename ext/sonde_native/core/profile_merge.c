/* profile_merge: see profile_merge.h. Called by the flush (a slot's profile into each open window), the merge command
 * and the viewer, on the thread that owns the target; the source is only read. No locks. */
#include "profile_merge.h"

#include <string.h>

#include "wide_math.h"

typedef struct merge {
  sn_profile *into;
  const sn_profile *from;
  /* ids of the source -> ids of the target, or SN_NO_ID; owned. Filled as samples need them. */
  uint32_t *strings, *locations, *stacks, *labels;
  uint32_t *frames; /* room for the longest stack; owned */
  uint32_t longest;
  const char *const *extra;
  uint32_t extra_count;
  int columns[SN_PROFILE_MAX_TYPES]; /* position in the target -> position in the source, or -1 */
} merge;

/* Ids ------------------------------------------------------------------------- */

static sn_status map_string(merge *m, uint32_t id, uint32_t *mapped) {
  if (m->strings[id] == SN_NO_ID) {
    size_t length;
    const char *bytes = sn_string_table_get(&m->from->strings, id, &length);
    const sn_status status = sn_profile_string(m->into, bytes, length, &m->strings[id]);
    if (status != SN_OK) return status;
  }
  *mapped = m->strings[id];
  return SN_OK;
}

static sn_status map_location(merge *m, uint32_t id, uint32_t *mapped) {
  if (m->locations[id] == SN_NO_ID) {
    const sn_location *location = &m->from->locations[id];
    sn_function function = m->from->functions[location->function];
    sn_location added = {.line = location->line};
    sn_status status = map_string(m, function.name, &function.name);
    if (status == SN_OK) status = map_string(m, function.filename, &function.filename);
    if (status == SN_OK) status = sn_profile_function(m->into, function, &added.function);
    if (status == SN_OK) status = sn_profile_location(m->into, added, &m->locations[id]);
    if (status != SN_OK) return status;
  }
  *mapped = m->locations[id];
  return SN_OK;
}

static sn_status map_stack(merge *m, uint32_t id, uint32_t *mapped) {
  if (m->stacks[id] == SN_NO_ID) {
    uint32_t n;
    const uint32_t *ids = sn_stack_table_get(&m->from->stacks, id, &n);
    for (uint32_t i = 0; i < n; i++) {
      const sn_status status = map_location(m, ids[i], &m->frames[i]);
      if (status != SN_OK) return status;
    }
    const sn_status status = sn_profile_stack(m->into, m->frames, n, &m->stacks[id]);
    if (status != SN_OK) return status;
  }
  *mapped = m->stacks[id];
  return SN_OK;
}

static sn_status extra_labels(merge *m, sn_label *labels, uint32_t *n) {
  for (uint32_t i = 0; i < m->extra_count && *n < SN_LABEL_SET_MAX; i++) {
    const char *key = m->extra[2 * (size_t)i], *value = m->extra[2 * (size_t)i + 1];
    sn_label label = {0};
    sn_status status = sn_profile_string(m->into, key, strlen(key), &label.key);
    if (status == SN_OK) status = sn_profile_string(m->into, value, strlen(value), &label.str);
    if (status != SN_OK) return status;
    bool present = false;
    for (uint32_t k = 0; k < *n; k++) present |= labels[k].key == label.key;
    if (!present) labels[(*n)++] = label;
  }
  return SN_OK;
}

static sn_status make_labels(merge *m, uint32_t id, uint32_t *mapped) {
  sn_label labels[SN_LABEL_SET_MAX];
  uint32_t n;
  const sn_label *own = sn_label_sets_get(&m->from->labels, id, &n);
  for (uint32_t i = 0; i < n; i++) {
    labels[i] = own[i];
    sn_status status = map_string(m, own[i].key, &labels[i].key);
    if (status == SN_OK) status = map_string(m, own[i].str, &labels[i].str);
    if (status == SN_OK) status = map_string(m, own[i].num_unit, &labels[i].num_unit);
    if (status != SN_OK) return status;
  }
  const sn_status status = extra_labels(m, labels, &n);
  return status != SN_OK ? status : sn_profile_labels(m->into, labels, n, mapped);
}

static sn_status map_labels(merge *m, uint32_t id, uint32_t *mapped) {
  if (m->labels[id] == SN_NO_ID) {
    const sn_status status = make_labels(m, id, &m->labels[id]);
    if (status != SN_OK) return status;
  }
  *mapped = m->labels[id];
  return SN_OK;
}

/* Types ----------------------------------------------------------------------- */

static bool same_string(const merge *m, uint32_t into, uint32_t from) {
  size_t into_length, from_length;
  const char *a = sn_string_table_get(&m->into->strings, into, &into_length);
  const char *b = sn_string_table_get(&m->from->strings, from, &from_length);
  return into_length == from_length && memcmp(a, b, from_length) == 0;
}

static bool same_type(const merge *m, sn_value_type into, sn_value_type from) {
  return same_string(m, into.type, from.type) && same_string(m, into.unit, from.unit);
}

static sn_status map_type(merge *m, sn_value_type from, sn_value_type *mapped) {
  const sn_status status = map_string(m, from.type, &mapped->type);
  return status != SN_OK ? status : map_string(m, from.unit, &mapped->unit);
}

/* All or none: a target with some of the types would keep them for ever. */
static sn_status copy_types(merge *m) {
  sn_value_type types[SN_PROFILE_MAX_TYPES];
  uint32_t default_type, position;
  for (uint32_t i = 0; i < m->from->type_count; i++) {
    const sn_status status = map_type(m, m->from->types[i], &types[i]);
    if (status != SN_OK) return status;
  }
  sn_status status = map_string(m, m->from->default_type, &default_type);
  if (status != SN_OK) return status;
  for (uint32_t i = 0; i < m->from->type_count; i++) {
    m->columns[i] = (int)i;
    status = sn_profile_add_type_ids(m->into, types[i], &position);
    if (status != SN_OK) return status;
  }
  m->into->default_type = default_type;
  return SN_OK;
}

static sn_status match_types(merge *m) {
  if (m->into->type_count == 0) return copy_types(m);
  bool any = false;
  for (uint32_t i = 0; i < m->into->type_count; i++) {
    m->columns[i] = -1;
    for (uint32_t k = 0; k < m->from->type_count && m->columns[i] < 0; k++) {
      if (same_type(m, m->into->types[i], m->from->types[k])) m->columns[i] = (int)k;
    }
    any |= m->columns[i] >= 0;
  }
  return any || m->from->type_count == 0 ? SN_OK : SN_MISMATCH;
}

/* Header ---------------------------------------------------------------------- */

static sn_status merge_period(merge *m) {
  sn_value_type mapped;
  if (m->from->period_type.type != 0) {
    if (m->into->period_type.type != 0 && !same_type(m, m->into->period_type, m->from->period_type)) return SN_MISMATCH;
    const sn_status status = map_type(m, m->from->period_type, &mapped);
    if (status != SN_OK) return status;
    m->into->period_type = mapped;
  }
  if (m->from->period > m->into->period) m->into->period = m->from->period;
  return SN_OK;
}

/* A start of 0 is an unknown one: then only the durations can be compared. */
static void merge_time(sn_profile *into, const sn_profile *from) {
  if (into->time_nanos == 0 || from->time_nanos == 0) {
    if (into->time_nanos == 0) into->time_nanos = from->time_nanos;
    if (from->duration_nanos > into->duration_nanos) into->duration_nanos = from->duration_nanos;
    return;
  }
  const int64_t into_end = sn_add_saturating(into->time_nanos, into->duration_nanos);
  const int64_t from_end = sn_add_saturating(from->time_nanos, from->duration_nanos);
  const int64_t end = into_end > from_end ? into_end : from_end;
  if (from->time_nanos < into->time_nanos) into->time_nanos = from->time_nanos;
  if (__builtin_sub_overflow(end, into->time_nanos, &into->duration_nanos)) into->duration_nanos = INT64_MAX;
}

static sn_status merge_comments(merge *m) {
  for (uint32_t i = 0; i < m->from->comment_count; i++) {
    size_t length;
    const char *text = sn_string_table_get(&m->from->strings, m->from->comments[i], &length);
    const sn_status status = sn_profile_add_comment(m->into, text, length);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

/* Samples --------------------------------------------------------------------- */

static sn_status merge_sample(merge *m, uint32_t id) {
  const int64_t *from = m->from->values + (size_t)id * m->from->type_count;
  int64_t values[SN_PROFILE_MAX_TYPES];
  uint32_t stack, labels;
  bool something = false;
  for (uint32_t i = 0; i < m->into->type_count; i++) {
    values[i] = m->columns[i] < 0 ? 0 : from[m->columns[i]];
    something |= values[i] != 0;
  }
  if (!something) return SN_OK;
  sn_status status = map_stack(m, m->from->samples[id].stack, &stack);
  if (status == SN_OK) status = map_labels(m, m->from->samples[id].labels, &labels);
  return status != SN_OK ? status : sn_profile_add_sample(m->into, stack, labels, values);
}

static sn_status merge_samples(merge *m) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < m->from->sample_count && status == SN_OK; i++) status = merge_sample(m, i);
  return status;
}

/* Life ------------------------------------------------------------------------ */

static uint32_t longest_stack(const sn_stack_table *stacks) {
  uint32_t longest = 0;
  for (uint32_t i = 0; i < stacks->count; i++) {
    if (stacks->stacks[i].length > longest) longest = stacks->stacks[i].length;
  }
  return longest;
}

/* One more than asked for, so that nothing is ever empty; all SN_NO_ID. */
static sn_status allocate_ids(sn_memory *memory, uint32_t **ids, uint32_t count) {
  if (count >= UINT32_MAX / sizeof(**ids)) return SN_FULL; /* a billion: more than fits a 32-bit machine */
  const size_t size = ((size_t)count + 1) * sizeof(**ids);
  uint32_t *block = sn_memory_alloc(memory, size);
  if (block == NULL) return sn_memory_failure(memory, size);
  memset(block, 0xff, size);
  *ids = block;
  return SN_OK;
}

static void free_ids(sn_memory *memory, uint32_t *ids, uint32_t count) {
  sn_memory_free(memory, ids, ((size_t)count + 1) * sizeof(*ids));
}

static sn_status allocate_scratch(merge *m) {
  sn_memory *memory = &m->into->memory;
  m->longest = longest_stack(&m->from->stacks);
  sn_status status = allocate_ids(memory, &m->strings, m->from->strings.count);
  if (status == SN_OK) status = allocate_ids(memory, &m->locations, m->from->location_count);
  if (status == SN_OK) status = allocate_ids(memory, &m->stacks, m->from->stacks.count);
  if (status == SN_OK) status = allocate_ids(memory, &m->labels, m->from->labels.count);
  return status != SN_OK ? status : allocate_ids(memory, &m->frames, m->longest);
}

static void free_scratch(merge *m) {
  sn_memory *memory = &m->into->memory;
  free_ids(memory, m->strings, m->from->strings.count);
  free_ids(memory, m->locations, m->from->location_count);
  free_ids(memory, m->stacks, m->from->stacks.count);
  free_ids(memory, m->labels, m->from->labels.count);
  free_ids(memory, m->frames, m->longest);
}

sn_status sn_profile_merge(sn_profile *into, const sn_profile *from, const char *const *extra, uint32_t extra_count) {
  if (into == from) return SN_INVALID;
  merge m = {.into = into, .from = from, .extra = extra, .extra_count = extra == NULL ? 0 : extra_count};
  sn_status status = allocate_scratch(&m);
  if (status == SN_OK) status = match_types(&m);
  if (status == SN_OK) status = merge_period(&m);
  if (status == SN_OK) status = merge_comments(&m);
  if (status == SN_OK) status = merge_samples(&m);
  if (status == SN_OK) merge_time(into, from);
  free_scratch(&m);
  return status;
}
