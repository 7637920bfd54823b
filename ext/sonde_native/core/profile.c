/* profile: see profile.h. Called by raw_convert, the reader and the merge to build, by the writers and views to read;
 * on the one thread that owns the profile, with or without the GVL. No locks. */
#include "profile.h"

#include <string.h>

#include "hash.h"
#include "wide_math.h"

/* Life ------------------------------------------------------------------------ */

static sn_status init_tables(sn_profile *profile) {
  sn_memory *memory = &profile->memory;
  sn_hash_index_init(&profile->function_index, memory);
  sn_hash_index_init(&profile->location_index, memory);
  sn_hash_index_init(&profile->sample_index, memory);
  sn_status status = sn_string_table_init(&profile->strings, memory);
  if (status == SN_OK) status = sn_stack_table_init(&profile->stacks, memory);
  if (status == SN_OK) status = sn_label_sets_init(&profile->labels, memory);
  return status;
}

sn_status sn_profile_init(sn_profile *profile, size_t memory_limit) {
  memset(profile, 0, sizeof(*profile));
  sn_memory_init(&profile->memory, memory_limit);
  /* Those that init_tables may not come to are destroyed below all the same. */
  profile->strings.memory = profile->stacks.memory = profile->labels.memory = &profile->memory;
  profile->strings.arena.memory = profile->strings.index.memory = &profile->memory;
  profile->stacks.index.memory = profile->labels.index.memory = &profile->memory;
  const sn_status status = init_tables(profile);
  if (status != SN_OK) sn_profile_destroy(profile);
  return status;
}

void sn_profile_destroy(sn_profile *profile) {
  sn_memory *memory = &profile->memory;
  sn_string_table_destroy(&profile->strings);
  sn_stack_table_destroy(&profile->stacks);
  sn_label_sets_destroy(&profile->labels);
  sn_hash_index_destroy(&profile->function_index);
  sn_hash_index_destroy(&profile->location_index);
  sn_hash_index_destroy(&profile->sample_index);
  sn_memory_free(memory, profile->functions, profile->function_capacity * sizeof(*profile->functions));
  sn_memory_free(memory, profile->locations, profile->location_capacity * sizeof(*profile->locations));
  sn_memory_free(memory, profile->samples, profile->sample_capacity * sizeof(*profile->samples));
  sn_memory_free(memory, profile->values, profile->value_capacity * sizeof(*profile->values));
  sn_memory_free(memory, profile->comments, profile->comment_capacity * sizeof(*profile->comments));
  profile->functions = NULL;
  profile->locations = NULL;
  profile->samples = NULL;
  profile->values = NULL;
  profile->comments = NULL;
  profile->function_capacity = profile->location_capacity = profile->sample_capacity = profile->comment_capacity = 0;
  profile->function_count = profile->location_count = profile->sample_count = profile->comment_count = 0;
  profile->value_capacity = 0;
  sn_assert(atomic_load(&memory->used) == 0);
}

/* Texts, functions, locations, stacks, labels --------------------------------- */

sn_status sn_profile_string(sn_profile *profile, const char *bytes, size_t length, uint32_t *id) {
  return sn_string_table_intern(&profile->strings, bytes, length, id);
}

/* Room for one more entry in an index and in its array. */
static sn_status reserve(sn_profile *profile, sn_hash_index *index, void **array, uint32_t *capacity, uint32_t count,
                         size_t size) {
  if (count == SN_NO_ID) return SN_FULL;
  const sn_status status = sn_hash_index_reserve(index);
  return status != SN_OK ? status : sn_memory_grow(&profile->memory, array, capacity, count + 1, size);
}

sn_status sn_profile_function(sn_profile *profile, sn_function function, uint32_t *id) {
  if (function.name >= profile->strings.count || function.filename >= profile->strings.count) return SN_INVALID;
  const uint32_t hash = sn_hash_pair(function.name | (uint64_t)function.filename << 32, (uint64_t)function.start_line);
  uint32_t cursor = hash, found;
  while ((found = sn_hash_index_next(&profile->function_index, hash, &cursor)) != SN_NO_ID) {
    const sn_function *other = &profile->functions[found];
    if (other->name != function.name || other->filename != function.filename) continue;
    if (other->start_line != function.start_line) continue;
    *id = found;
    return SN_OK;
  }
  const sn_status status = reserve(profile, &profile->function_index, (void **)&profile->functions,
                                   &profile->function_capacity, profile->function_count, sizeof(function));
  if (status != SN_OK) return status;
  sn_hash_index_put(&profile->function_index, hash, profile->function_count);
  profile->functions[profile->function_count] = function;
  *id = profile->function_count++;
  return SN_OK;
}

sn_status sn_profile_location(sn_profile *profile, sn_location location, uint32_t *id) {
  if (location.function >= profile->function_count) return SN_INVALID;
  const uint32_t hash = sn_hash_pair(location.function, (uint64_t)location.line);
  uint32_t cursor = hash, found;
  while ((found = sn_hash_index_next(&profile->location_index, hash, &cursor)) != SN_NO_ID) {
    const sn_location *other = &profile->locations[found];
    if (other->function != location.function || other->line != location.line) continue;
    *id = found;
    return SN_OK;
  }
  const sn_status status = reserve(profile, &profile->location_index, (void **)&profile->locations,
                                   &profile->location_capacity, profile->location_count, sizeof(location));
  if (status != SN_OK) return status;
  sn_hash_index_put(&profile->location_index, hash, profile->location_count);
  profile->locations[profile->location_count] = location;
  *id = profile->location_count++;
  return SN_OK;
}

sn_status sn_profile_stack(sn_profile *profile, const uint32_t *locations, uint32_t n, uint32_t *id) {
  for (uint32_t i = 0; i < n; i++) {
    if (locations[i] >= profile->location_count) return SN_INVALID;
  }
  return sn_stack_table_intern(&profile->stacks, locations, n, id);
}

sn_status sn_profile_labels(sn_profile *profile, const sn_label *labels, uint32_t n, uint32_t *id) {
  const uint32_t strings = profile->strings.count;
  for (uint32_t i = 0; i < n; i++) {
    if (labels[i].key >= strings || labels[i].str >= strings || labels[i].num_unit >= strings) return SN_INVALID;
  }
  return sn_label_sets_intern(&profile->labels, labels, n, id);
}

/* Types and comments ---------------------------------------------------------- */

sn_status sn_profile_add_type_ids(sn_profile *profile, sn_value_type type, uint32_t *position) {
  if (profile->sample_count > 0 || profile->type_count >= SN_PROFILE_MAX_TYPES) return SN_INVALID;
  if (type.type >= profile->strings.count || type.unit >= profile->strings.count) return SN_INVALID;
  profile->types[profile->type_count] = type;
  *position = profile->type_count++;
  return SN_OK;
}

sn_status sn_profile_add_type(sn_profile *profile, const char *type, const char *unit, uint32_t *position) {
  sn_value_type added;
  sn_status status = sn_profile_string(profile, type, strlen(type), &added.type);
  if (status == SN_OK) status = sn_profile_string(profile, unit, strlen(unit), &added.unit);
  return status == SN_OK ? sn_profile_add_type_ids(profile, added, position) : status;
}

int sn_profile_find_type(const sn_profile *profile, const char *type) {
  const uint32_t id = sn_string_table_find(&profile->strings, type, strlen(type));
  if (id == SN_NO_ID) return -1;
  for (uint32_t i = 0; i < profile->type_count; i++) {
    if (profile->types[i].type == id) return (int)i;
  }
  return -1;
}

sn_status sn_profile_add_comment(sn_profile *profile, const char *text, size_t length) {
  uint32_t id;
  sn_status status = sn_profile_string(profile, text, length, &id);
  if (status != SN_OK) return status;
  for (uint32_t i = 0; i < profile->comment_count; i++) {
    if (profile->comments[i] == id) return SN_OK;
  }
  status = sn_memory_grow(&profile->memory, (void **)&profile->comments, &profile->comment_capacity,
                          profile->comment_count + 1, sizeof(*profile->comments));
  if (status == SN_OK) profile->comments[profile->comment_count++] = id;
  return status;
}

/* Samples --------------------------------------------------------------------- */

static uint32_t find_sample(const sn_profile *profile, uint32_t hash, uint32_t stack, uint32_t labels) {
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&profile->sample_index, hash, &cursor)) != SN_NO_ID) {
    if (profile->samples[id].stack == stack && profile->samples[id].labels == labels) return id;
  }
  return SN_NO_ID;
}

static sn_status reserve_sample(sn_profile *profile) {
  const sn_status status = reserve(profile, &profile->sample_index, (void **)&profile->samples,
                                   &profile->sample_capacity, profile->sample_count, sizeof(*profile->samples));
  if (status != SN_OK) return status;
  const size_t used = (size_t)profile->sample_count * profile->type_count;
  if (used > SIZE_MAX - profile->type_count) return SN_FULL;
  return sn_memory_grow_large(&profile->memory, (void **)&profile->values, &profile->value_capacity,
                              used + profile->type_count, sizeof(*profile->values));
}

sn_status sn_profile_add_sample(sn_profile *profile, uint32_t stack, uint32_t labels, const int64_t *values) {
  const uint32_t types = profile->type_count;
  if (stack >= profile->stacks.count || labels >= profile->labels.count || types == 0) return SN_INVALID;
  const uint32_t hash = sn_hash_pair(stack, labels);
  uint32_t id = find_sample(profile, hash, stack, labels);
  if (id == SN_NO_ID) {
    const sn_status status = reserve_sample(profile);
    if (status != SN_OK) return status;
    id = profile->sample_count++;
    sn_hash_index_put(&profile->sample_index, hash, id);
    profile->samples[id] = (sn_sample){.stack = stack, .labels = labels};
    memset(profile->values + (size_t)id * types, 0, types * sizeof(*values));
  }
  int64_t *sums = profile->values + (size_t)id * types;
  for (uint32_t i = 0; i < types; i++) sums[i] = sn_add_saturating(sums[i], values[i]);
  return SN_OK;
}
