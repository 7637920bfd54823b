/* label_set: gives each distinct set of labels a small id; id 0 is the empty set.
 *
 * A label is a key with a text (str != 0) or with a number and perhaps its unit. All ids are of the profile's strings.
 * A set keeps its labels sorted by key, each key once. Sets are small: insertion sort, and a bound.
 * Threads: none inside; one owner at a time. Contexts: gvl, nogvl. Not signal.
 */
#ifndef SONDE_CORE_LABEL_SET_H
#define SONDE_CORE_LABEL_SET_H

#include "base.h"
#include "hash_index.h"
#include "memory.h"
#include "stack_table.h"
#include "status.h"

enum { SN_LABEL_SET_MAX = 256 };

typedef struct sn_label {
  uint32_t key;
  uint32_t str;
  int64_t num;
  uint32_t num_unit;
} sn_label;

typedef struct sn_label_sets {
  sn_memory *memory; /* borrowed */
  sn_hash_index index;
  sn_label *labels; /* all sets, end to end */
  uint32_t label_count, label_capacity;
  sn_stack_ref *sets; /* into labels */
  uint32_t count, capacity;
} sn_label_sets;

SN_MUST_USE sn_status sn_label_sets_init(sn_label_sets *sets, sn_memory *memory);
void sn_label_sets_destroy(sn_label_sets *sets);

/* Labels in any order; of two with one key the last wins. Finds or adds; on anything but SN_OK, *id is untouched and
 * the sets unchanged. SN_TOO_LARGE past SN_LABEL_SET_MAX. */
SN_MUST_USE sn_status sn_label_sets_intern(sn_label_sets *sets, const sn_label *labels, uint32_t n, uint32_t *id);

/* Borrowed until the next intern; NULL for the empty set. */
static inline const sn_label *sn_label_sets_get(const sn_label_sets *sets, uint32_t id, uint32_t *length) {
  sn_assert(id < sets->count);
  *length = sets->sets[id].length;
  return *length == 0 ? NULL : sets->labels + sets->sets[id].offset;
}

#endif
