/* hash_index: one open-addressing index, 32-bit hash -> u32 id. The caller keeps the keys and compares them.
 *
 * Linear probing; the slots remember the hash, so growing needs no keys. No removal but of everything at once.
 * To find:  uint32_t cursor = hash, id;
 *           while ((id = sn_hash_index_next(index, hash, &cursor)) != SN_NO_ID) if (<key of id is mine>) return id;
 * To add:   sn_hash_index_reserve (may fail, changes nothing visible), whatever else may fail, then sn_hash_index_put.
 * Threads:  none inside; one owner at a time. Contexts: gvl, gc, nogvl. Not signal: reserve may allocate.
 */
#ifndef SONDE_CORE_HASH_INDEX_H
#define SONDE_CORE_HASH_INDEX_H

#include "base.h"
#include "memory.h"
#include "status.h"

#define SN_NO_ID UINT32_MAX

typedef struct sn_hash_slot {
  uint32_t hash;
  uint32_t id; /* SN_NO_ID: empty */
} sn_hash_slot;

typedef struct sn_hash_index {
  sn_memory *memory;   /* borrowed */
  sn_hash_slot *slots; /* owned; NULL while capacity is 0 */
  uint32_t capacity;   /* 0 or a power of two */
  uint32_t count;
} sn_hash_index;

/* Allocates nothing. */
void sn_hash_index_init(sn_hash_index *index, sn_memory *memory);
void sn_hash_index_destroy(sn_hash_index *index);
/* Forgets everything and keeps at most max_capacity slots (0 or a power of two; at least as many as were kept if the C
 * library refuses the smaller block). Never fails. */
void sn_hash_index_reset(sn_hash_index *index, uint32_t max_capacity);

/* Room for one more. SN_OK, SN_FULL or SN_NO_MEMORY (then unchanged). */
SN_MUST_USE sn_status sn_hash_index_reserve(sn_hash_index *index);
/* Adds an id (not SN_NO_ID) for which room was reserved. */
void sn_hash_index_put(sn_hash_index *index, uint32_t hash, uint32_t id);

/* The next id with this hash, or SN_NO_ID; *cursor starts as the hash. */
static inline uint32_t sn_hash_index_next(const sn_hash_index *index, uint32_t hash, uint32_t *cursor) {
  if (SN_UNLIKELY(index->capacity == 0)) return SN_NO_ID;
  const uint32_t mask = index->capacity - 1;
  for (;;) {
    const sn_hash_slot *slot = &index->slots[(*cursor)++ & mask];
    if (slot->id == SN_NO_ID || slot->hash == hash) return slot->id;
  }
}

#endif
