/* profile_view: see profile_view.h. Called by the commands and the viewer, on one thread for each view; the profile is
 * only read (scratch memory has its own account), so no locks. Linear in the number of frames of all samples. */
#include "profile_view.h"

#include <string.h>

#include "hash.h"
#include "wide_math.h"

typedef struct view {
  const sn_profile *profile;
  sn_memory memory;
  sn_hash_index by_name; /* (name, file) -> the first function with them */
  uint32_t *first;       /* function -> the first of the same name and file; owned */
  uint32_t *of_location; /* location -> first function; owned */
  uint32_t *stamps;      /* by first function: the last sample (plus 1) that counted it; owned */
  sn_top_entry *entries; /* by first function; owned */
  sn_top_order order;
} view;

void sn_profile_totals(const sn_profile *profile, int64_t *out) {
  const uint32_t types = profile->type_count;
  for (uint32_t t = 0; t < types; t++) out[t] = 0;
  for (uint32_t i = 0; i < profile->sample_count; i++) {
    const int64_t *values = profile->values + (size_t)i * types;
    for (uint32_t t = 0; t < types; t++) out[t] = sn_add_saturating(out[t], values[t]);
  }
}

/* Functions of one name and file ---------------------------------------------- */

static sn_status find_first(view *v, uint32_t function) {
  const sn_function *functions = v->profile->functions;
  const uint32_t hash = sn_hash_pair(functions[function].name, functions[function].filename);
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&v->by_name, hash, &cursor)) != SN_NO_ID) {
    if (functions[id].name != functions[function].name) continue;
    if (functions[id].filename != functions[function].filename) continue;
    v->first[function] = id;
    return SN_OK;
  }
  const sn_status status = sn_hash_index_reserve(&v->by_name);
  if (status != SN_OK) return status;
  sn_hash_index_put(&v->by_name, hash, function);
  v->first[function] = function;
  return SN_OK;
}

static sn_status unite_functions(view *v) {
  for (uint32_t i = 0; i < v->profile->function_count; i++) {
    const sn_status status = find_first(v, i);
    if (status != SN_OK) return status;
    v->entries[i] = (sn_top_entry){.function = i};
    v->stamps[i] = 0;
  }
  for (uint32_t i = 0; i < v->profile->location_count; i++) {
    v->of_location[i] = v->first[v->profile->locations[i].function];
  }
  return SN_OK;
}

/* Sums ------------------------------------------------------------------------ */

static void add_sample(view *v, uint32_t sample, int64_t value) {
  uint32_t depth;
  const uint32_t *stack = sn_stack_table_get(&v->profile->stacks, v->profile->samples[sample].stack, &depth);
  for (uint32_t i = 0; i < depth; i++) {
    const uint32_t function = v->of_location[stack[i]];
    sn_top_entry *entry = &v->entries[function];
    if (i == 0) entry->flat = sn_add_saturating(entry->flat, value);
    if (v->stamps[function] == sample + 1) continue; /* recursion */
    v->stamps[function] = sample + 1;
    entry->cumulative = sn_add_saturating(entry->cumulative, value);
  }
}

static void add_samples(view *v, uint32_t type) {
  for (uint32_t i = 0; i < v->profile->sample_count; i++) {
    const int64_t value = v->profile->values[(size_t)i * v->profile->type_count + type];
    if (value != 0) add_sample(v, i, value);
  }
}

/* The largest: a heap with the least of those kept so far on top -------------- */

static int compare_text(const sn_profile *profile, uint32_t a, uint32_t b) {
  size_t a_length, b_length;
  const char *a_bytes = sn_string_table_get(&profile->strings, a, &a_length);
  const char *b_bytes = sn_string_table_get(&profile->strings, b, &b_length);
  const int order = memcmp(a_bytes, b_bytes, a_length < b_length ? a_length : b_length);
  if (order != 0) return order;
  return (a_length > b_length) - (a_length < b_length);
}

/* Whether a comes before b in the answer. */
static bool before(const view *v, const sn_top_entry *a, const sn_top_entry *b) {
  const bool by_flat = v->order == SN_TOP_BY_FLAT;
  const int64_t a_first = by_flat ? a->flat : a->cumulative, b_first = by_flat ? b->flat : b->cumulative;
  const int64_t a_second = by_flat ? a->cumulative : a->flat, b_second = by_flat ? b->cumulative : b->flat;
  if (a_first != b_first) return a_first > b_first;
  if (a_second != b_second) return a_second > b_second;
  const sn_function *functions = v->profile->functions;
  const int order = compare_text(v->profile, functions[a->function].name, functions[b->function].name);
  return order != 0 ? order < 0 : a->function < b->function;
}

static void sift_down(const view *v, sn_top_entry *heap, uint32_t count, uint32_t at) {
  const sn_top_entry moved = heap[at];
  for (;;) {
    if (at >= count / 2) break; /* no child */
    uint32_t child = 2 * at + 1;
    if (child + 1 < count && before(v, &heap[child], &heap[child + 1])) child++;
    if (!before(v, &moved, &heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

static void sift_up(const view *v, sn_top_entry *heap, uint32_t at) {
  const sn_top_entry moved = heap[at];
  while (at > 0 && before(v, &heap[(at - 1) / 2], &moved)) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = moved;
}

static uint32_t select_largest(const view *v, sn_top_entry *out, uint32_t limit) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < v->profile->function_count && limit > 0; i++) {
    const sn_top_entry *entry = &v->entries[i];
    if (entry->flat == 0 && entry->cumulative == 0) continue;
    if (count < limit) {
      out[count] = *entry;
      sift_up(v, out, count++);
    } else if (before(v, entry, &out[0])) {
      out[0] = *entry;
      sift_down(v, out, count, 0);
    }
  }
  for (uint32_t left = count; left > 1;) {
    const sn_top_entry last = out[0];
    out[0] = out[--left];
    out[left] = last;
    sift_down(v, out, left, 0);
  }
  return count;
}

/* Life ------------------------------------------------------------------------ */

static sn_status allocate_all(view *v, uint32_t *capacities) {
  const uint32_t functions = v->profile->function_count + (v->profile->function_count == 0);
  const uint32_t locations = v->profile->location_count + (v->profile->location_count == 0);
  sn_memory *memory = &v->memory;
  sn_status status = sn_memory_grow(memory, (void **)&v->first, &capacities[0], functions, sizeof(*v->first));
  if (status == SN_OK) {
    status = sn_memory_grow(memory, (void **)&v->of_location, &capacities[1], locations, sizeof(*v->of_location));
  }
  if (status == SN_OK) {
    status = sn_memory_grow(memory, (void **)&v->stamps, &capacities[2], functions, sizeof(*v->stamps));
  }
  if (status == SN_OK) {
    status = sn_memory_grow(memory, (void **)&v->entries, &capacities[3], functions, sizeof(*v->entries));
  }
  return status;
}

static void free_all(view *v, const uint32_t *capacities) {
  sn_hash_index_destroy(&v->by_name);
  sn_memory_free(&v->memory, v->first, capacities[0] * sizeof(*v->first));
  sn_memory_free(&v->memory, v->of_location, capacities[1] * sizeof(*v->of_location));
  sn_memory_free(&v->memory, v->stamps, capacities[2] * sizeof(*v->stamps));
  sn_memory_free(&v->memory, v->entries, capacities[3] * sizeof(*v->entries));
}

sn_status sn_profile_top(const sn_profile *profile, uint32_t type, sn_top_order order, sn_top_entry *out,
                         uint32_t limit, uint32_t *count) {
  if (type >= profile->type_count) return SN_INVALID;
  view v = {.profile = profile, .order = order};
  uint32_t capacities[4] = {0};
  sn_memory_init(&v.memory, 0);
  sn_hash_index_init(&v.by_name, &v.memory);
  sn_status status = allocate_all(&v, capacities);
  if (status == SN_OK) status = unite_functions(&v);
  if (status == SN_OK) {
    add_samples(&v, type);
    *count = select_largest(&v, out, limit);
  }
  free_all(&v, capacities);
  return status;
}
