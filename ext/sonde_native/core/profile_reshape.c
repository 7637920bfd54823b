/* profile_reshape: see profile_reshape.h. Called by the binding, on the thread that reports, without the GVL; only
 * reads the profile given, so no locks. */
#include "profile_reshape.h"

#include <stdio.h>
#include <string.h>

/* Positions of the source -> positions of the target; SN_NO_ID: not there yet. */
typedef struct maps {
  uint32_t *all; /* owned: one block for all of them */
  size_t bytes;
  uint32_t *strings, *functions, *locations, *stacks, *labels;
} maps;

typedef struct work {
  sn_profile *out;
  const sn_profile *in;
  const sn_reshape *how;
  maps maps;
  uint32_t columns[SN_PROFILE_MAX_TYPES]; /* of the source, for each type of the target */
  uint32_t *room;                         /* for one stack */
  size_t room_bytes;
} work;

static sn_status make_maps(work *w) {
  const sn_profile *in = w->in;
  const size_t count =
      (size_t)in->strings.count + in->function_count + in->location_count + in->stacks.count + in->labels.count;
  w->maps.bytes = count * sizeof(uint32_t);
  w->maps.all = sn_memory_alloc(&w->out->memory, w->maps.bytes);
  if (w->maps.all == NULL) return sn_memory_failure(&w->out->memory, w->maps.bytes);
  memset(w->maps.all, 0xff, w->maps.bytes);
  w->maps.strings = w->maps.all;
  w->maps.functions = w->maps.strings + in->strings.count;
  w->maps.locations = w->maps.functions + in->function_count;
  w->maps.stacks = w->maps.locations + in->location_count;
  w->maps.labels = w->maps.stacks + in->stacks.count;
  return SN_OK;
}

static sn_status map_string(work *w, uint32_t id, uint32_t *mapped) {
  uint32_t *known = &w->maps.strings[id];
  size_t length;
  sn_status status = SN_OK;
  if (*known == SN_NO_ID) {
    const char *bytes = sn_string_table_get(&w->in->strings, id, &length);
    status = sn_profile_string(w->out, bytes, length, known);
  }
  *mapped = *known;
  return status;
}

static sn_status put_string(work *w, const char *text, uint32_t *id) {
  return sn_profile_string(w->out, text, strlen(text), id);
}

/* Frames ---------------------------------------------------------------------- */

static sn_status map_function(work *w, uint32_t id, uint32_t *mapped) {
  uint32_t *known = &w->maps.functions[id];
  sn_status status = SN_OK;
  if (*known == SN_NO_ID) {
    const sn_function *from = &w->in->functions[id];
    sn_function function = {.start_line = from->start_line};
    status = map_string(w, from->name, &function.name);
    if (status == SN_OK) status = map_string(w, from->filename, &function.filename);
    if (status == SN_OK) status = sn_profile_function(w->out, function, known);
  }
  *mapped = *known;
  return status;
}

static sn_status map_location(work *w, uint32_t id, uint32_t *mapped) {
  uint32_t *known = &w->maps.locations[id];
  sn_status status = SN_OK;
  if (*known == SN_NO_ID) {
    sn_location location = {.line = w->in->locations[id].line};
    status = map_function(w, w->in->locations[id].function, &location.function);
    if (status == SN_OK) status = sn_profile_location(w->out, location, known);
  }
  *mapped = *known;
  return status;
}

static sn_status omitted(work *w, uint32_t frames, uint32_t *id) {
  char text[40];
  sn_function function = {0};
  sn_location location = {0};
  snprintf(text, sizeof(text), "(%u frames omitted)", frames);
  sn_status status = put_string(w, text, &function.name);
  if (status == SN_OK) status = sn_profile_function(w->out, function, &location.function);
  return status == SN_OK ? sn_profile_location(w->out, location, id) : status;
}

/* Of a stack that is too deep: the leaf's half, one frame, the root's half. */
static sn_status copy_stack(work *w, const uint32_t *from, uint32_t depth, uint32_t *n) {
  const uint32_t max = w->how->max_depth;
  const bool fold = max > 2 && depth > max;
  const uint32_t leaf = fold ? max / 2 : depth;
  const uint32_t root = fold ? max - leaf - 1 : 0;
  sn_status status = SN_OK;
  *n = 0;
  for (uint32_t i = 0; i < leaf && status == SN_OK; i++) status = map_location(w, from[i], &w->room[(*n)++]);
  if (fold && status == SN_OK) status = omitted(w, depth - leaf - root, &w->room[(*n)++]);
  for (uint32_t i = depth - root; i < depth && status == SN_OK; i++) {
    status = map_location(w, from[i], &w->room[(*n)++]);
  }
  return status;
}

static sn_status map_stack(work *w, uint32_t id, uint32_t *mapped) {
  uint32_t *known = &w->maps.stacks[id];
  sn_status status = SN_OK;
  if (*known == SN_NO_ID) {
    uint32_t depth, n;
    const uint32_t *from = sn_stack_table_get(&w->in->stacks, id, &depth);
    status = copy_stack(w, from, depth, &n);
    if (status == SN_OK) status = sn_profile_stack(w->out, w->room, n, known);
  }
  *mapped = *known;
  return status;
}

/* Labels ---------------------------------------------------------------------- */

static bool is_text(const sn_profile *profile, uint32_t id, const char *text) {
  size_t length;
  const char *bytes = sn_string_table_get(&profile->strings, id, &length);
  return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

static const sn_reshape_label *rule_for(const work *w, const sn_label *label) {
  for (uint32_t i = 0; i < w->how->label_count; i++) {
    const sn_reshape_label *rule = &w->how->labels[i];
    if (!is_text(w->in, label->key, rule->key)) continue;
    if (rule->value == NULL || (label->str != 0 && is_text(w->in, label->str, rule->value))) return rule;
  }
  return NULL;
}

static sn_status new_value(work *w, const sn_reshape_label *rule, const sn_label *from, sn_label *label) {
  char hex[17];
  if (strcmp(rule->new_value, SN_RESHAPE_HEX) != 0) return put_string(w, rule->new_value, &label->str);
  if (from->str != 0) return map_string(w, from->str, &label->str);
  snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)from->num);
  label->num = 0;
  return put_string(w, hex, &label->str);
}

/* Answers by *kept whether the label stays. */
static sn_status map_label(work *w, const sn_label *from, sn_label *label, bool *kept) {
  const sn_reshape_label *rule = rule_for(w, from);
  *kept = rule == NULL || rule->new_key != NULL;
  if (!*kept) return SN_OK;
  *label = (sn_label){.num = from->num};
  sn_status status = rule == NULL ? map_string(w, from->key, &label->key) : put_string(w, rule->new_key, &label->key);
  if (status == SN_OK) status = map_string(w, from->num_unit, &label->num_unit);
  if (status != SN_OK) return status;
  if (rule != NULL && rule->new_value != NULL) return new_value(w, rule, from, label);
  return from->str == 0 ? SN_OK : map_string(w, from->str, &label->str);
}

static sn_status map_labels(work *w, uint32_t id, uint32_t *mapped) {
  uint32_t *known = &w->maps.labels[id];
  if (*known == SN_NO_ID) {
    sn_label labels[SN_LABEL_SET_MAX];
    uint32_t n, kept_count = 0;
    const sn_label *from = sn_label_sets_get(&w->in->labels, id, &n);
    for (uint32_t i = 0; i < n; i++) {
      bool kept;
      const sn_status status = map_label(w, &from[i], &labels[kept_count], &kept);
      if (status != SN_OK) return status;
      if (kept) kept_count++;
    }
    const sn_status status = sn_profile_labels(w->out, labels, kept_count, known);
    if (status != SN_OK) return status;
  }
  *mapped = *known;
  return SN_OK;
}

/* Samples --------------------------------------------------------------------- */

static sn_status choose_types(work *w) {
  for (uint32_t i = 0; i < w->how->type_count && w->out->type_count < SN_PROFILE_MAX_TYPES; i++) {
    const sn_reshape_type *type = &w->how->types[i];
    const int column = sn_profile_find_type(w->in, type->from);
    uint32_t position;
    if (column < 0) continue;
    const sn_status status = sn_profile_add_type(w->out, type->type, type->unit, &position);
    if (status != SN_OK) return status;
    w->columns[position] = (uint32_t)column;
  }
  return SN_OK;
}

static sn_status add_sample(work *w, uint32_t id) {
  const int64_t *from = w->in->values + (size_t)id * w->in->type_count;
  int64_t values[SN_PROFILE_MAX_TYPES];
  bool any = false;
  for (uint32_t i = 0; i < w->out->type_count; i++) {
    values[i] = from[w->columns[i]];
    any = any || values[i] != 0;
  }
  if (!any) return SN_OK;
  uint32_t stack, labels;
  sn_status status = map_stack(w, w->in->samples[id].stack, &stack);
  if (status == SN_OK) status = map_labels(w, w->in->samples[id].labels, &labels);
  return status == SN_OK ? sn_profile_add_sample(w->out, stack, labels, values) : status;
}

static sn_status add_samples(work *w) {
  const uint32_t first = w->how->first < w->in->sample_count ? w->how->first : w->in->sample_count;
  const uint32_t rest = w->in->sample_count - first;
  const uint32_t count = w->how->count < rest ? w->how->count : rest;
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < count && status == SN_OK; i++) status = add_sample(w, first + i);
  return status;
}

static sn_status copy_header(work *w) {
  sn_profile *out = w->out;
  sn_status status = SN_OK;
  out->time_nanos = w->in->time_nanos;
  out->duration_nanos = w->in->duration_nanos;
  out->period = w->in->period;
  if (w->how->period_type != NULL) {
    status = put_string(w, w->how->period_type, &out->period_type.type);
    if (status == SN_OK) status = put_string(w, w->how->period_unit, &out->period_type.unit);
  } else {
    status = map_string(w, w->in->period_type.type, &out->period_type.type);
    if (status == SN_OK) status = map_string(w, w->in->period_type.unit, &out->period_type.unit);
  }
  if (out->type_count > 0) out->default_type = out->types[0].type;
  for (uint32_t i = 0; i < w->in->comment_count && status == SN_OK; i++) {
    size_t length;
    const char *bytes = sn_string_table_get(&w->in->strings, w->in->comments[i], &length);
    status = sn_profile_add_comment(out, bytes, length);
  }
  return status;
}

static sn_status make_room(work *w) {
  uint32_t deepest = 1;
  for (uint32_t i = 0; i < w->in->stacks.count; i++) {
    if (w->in->stacks.stacks[i].length > deepest) deepest = w->in->stacks.stacks[i].length;
  }
  w->room_bytes = (size_t)deepest * sizeof(uint32_t);
  w->room = sn_memory_alloc(&w->out->memory, w->room_bytes);
  return w->room == NULL ? sn_memory_failure(&w->out->memory, w->room_bytes) : SN_OK;
}

sn_status sn_profile_reshape(sn_profile *out, const sn_profile *in, const sn_reshape *how) {
  work w = {.out = out, .in = in, .how = how};
  sn_status status = make_maps(&w);
  if (status == SN_OK) status = make_room(&w);
  if (status == SN_OK) status = choose_types(&w);
  if (status == SN_OK && out->type_count > 0) status = add_samples(&w);
  if (status == SN_OK) status = copy_header(&w);
  sn_memory_free(&out->memory, w.room, w.room_bytes);
  sn_memory_free(&out->memory, w.maps.all, w.maps.bytes);
  return status;
}
