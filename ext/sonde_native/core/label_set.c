/* label_set: see label_set.h. Called by the profile, on the thread that owns it; no locks. */
#include "label_set.h"

#include <string.h>

#include "hash.h"

sn_status sn_label_sets_init(sn_label_sets *sets, sn_memory *memory) {
  *sets = (sn_label_sets){.memory = memory};
  sn_hash_index_init(&sets->index, memory);
  uint32_t empty;
  const sn_status status = sn_label_sets_intern(sets, NULL, 0, &empty);
  if (status != SN_OK) sn_label_sets_destroy(sets);
  return status;
}

void sn_label_sets_destroy(sn_label_sets *sets) {
  sn_hash_index_destroy(&sets->index);
  sn_memory_free(sets->memory, sets->labels, sets->label_capacity * sizeof(*sets->labels));
  sn_memory_free(sets->memory, sets->sets, sets->capacity * sizeof(*sets->sets));
  sets->labels = NULL;
  sets->sets = NULL;
  sets->label_count = sets->label_capacity = sets->count = sets->capacity = 0;
}

static sn_status reserve(sn_label_sets *sets, uint32_t n) {
  if (n > SN_LABEL_SET_MAX) return SN_TOO_LARGE;
  if (sets->count == SN_NO_ID || n > UINT32_MAX - sets->label_count) return SN_FULL;
  sn_status status = sn_hash_index_reserve(&sets->index);
  if (status != SN_OK) return status;
  status = sn_memory_grow(sets->memory, (void **)&sets->sets, &sets->capacity, sets->count + 1, sizeof(*sets->sets));
  if (status != SN_OK) return status;
  return sn_memory_grow(sets->memory, (void **)&sets->labels, &sets->label_capacity, sets->label_count + n,
                        sizeof(*sets->labels));
}

/* Sorts by key into `out` (room for n) and returns how many different keys there are. */
static uint32_t sort_unique(sn_label *out, const sn_label *labels, uint32_t n) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = count;
    while (at > 0 && out[at - 1].key > labels[i].key) at--;
    if (at > 0 && out[at - 1].key == labels[i].key) {
      out[at - 1] = labels[i];
      continue;
    }
    memmove(out + at + 1, out + at, (count - at) * sizeof(*out));
    out[at] = labels[i];
    count++;
  }
  return count;
}

/* Field by field: the padding of a label is not part of it. */
static uint32_t hash_labels(const sn_label *labels, uint32_t n) {
  uint64_t hash = n;
  for (uint32_t i = 0; i < n; i++) {
    hash = sn_hash_step(hash, labels[i].key | (uint64_t)labels[i].str << 32);
    hash = sn_hash_step(hash, (uint64_t)labels[i].num);
    hash = sn_hash_step(hash, labels[i].num_unit);
  }
  return sn_hash_finish(hash);
}

static bool equal(const sn_label *a, const sn_label *b, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (a[i].key != b[i].key || a[i].str != b[i].str || a[i].num != b[i].num || a[i].num_unit != b[i].num_unit) {
      return false;
    }
  }
  return true;
}

static uint32_t find(const sn_label_sets *sets, uint32_t hash, const sn_label *labels, uint32_t n) {
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&sets->index, hash, &cursor)) != SN_NO_ID) {
    const sn_stack_ref ref = sets->sets[id];
    if (ref.length == n && equal(sets->labels + ref.offset, labels, n)) return id;
  }
  return SN_NO_ID;
}

sn_status sn_label_sets_intern(sn_label_sets *sets, const sn_label *labels, uint32_t n, uint32_t *id) {
  if (n == 0 && sets->count > 0) {
    *id = 0;
    return SN_OK;
  }
  const sn_status status = reserve(sets, n);
  if (status != SN_OK) return status;
  /* Sorted where a new set would stay. */
  sn_label *room = sets->labels == NULL ? NULL : sets->labels + sets->label_count;
  const uint32_t length = n == 0 ? 0 : sort_unique(room, labels, n);
  const uint32_t hash = hash_labels(room, length);
  const uint32_t found = find(sets, hash, room, length);
  if (found != SN_NO_ID) {
    *id = found;
    return SN_OK;
  }
  sets->sets[sets->count] = (sn_stack_ref){.offset = sets->label_count, .length = length};
  sets->label_count += length;
  sn_hash_index_put(&sets->index, hash, sets->count);
  *id = sets->count++;
  return SN_OK;
}
