/* hash_index: see hash_index.h. Called by every table of the core, on the thread that owns the table; no locks. */
#include "hash_index.h"

#include <string.h>

#ifdef SONDE_TESTING
enum { FIRST_CAPACITY = 4 }; /* tiny, so that tests grow often */
#else
enum { FIRST_CAPACITY = 64 };
#endif
/* The last power of two of which a size in bytes can be spoken about. */
#if SIZE_MAX > UINT32_MAX
#define LAST_CAPACITY (UINT32_C(1) << 31)
#else
#define LAST_CAPACITY (UINT32_C(1) << 27)
#endif

void sn_hash_index_init(sn_hash_index *index, sn_memory *memory) {
  index->memory = memory;
  index->slots = NULL;
  index->capacity = 0;
  index->count = 0;
}

void sn_hash_index_destroy(sn_hash_index *index) {
  sn_memory_free(index->memory, index->slots, (size_t)index->capacity * sizeof(*index->slots));
  sn_hash_index_init(index, index->memory);
}

static void clear_slots(sn_hash_slot *slots, uint32_t capacity) {
  memset(slots, 0xff, (size_t)capacity * sizeof(*slots)); /* makes every id SN_NO_ID */
}

static void insert(sn_hash_slot *slots, uint32_t capacity, sn_hash_slot entry) {
  uint32_t at = entry.hash & (capacity - 1);
  while (slots[at].id != SN_NO_ID) at = (at + 1) & (capacity - 1);
  slots[at] = entry;
}

void sn_hash_index_reset(sn_hash_index *index, uint32_t max_capacity) {
  index->count = 0;
  sn_memory_trim(index->memory, (void **)&index->slots, &index->capacity, max_capacity, sizeof(*index->slots));
  if (index->capacity != 0) clear_slots(index->slots, index->capacity);
}

static sn_status grow(sn_hash_index *index) {
  if (index->capacity >= LAST_CAPACITY) return SN_FULL;
  const uint32_t capacity = index->capacity == 0 ? FIRST_CAPACITY : index->capacity * 2;
  const size_t size = (size_t)capacity * sizeof(sn_hash_slot);
  sn_hash_slot *slots = sn_memory_alloc(index->memory, size);
  if (slots == NULL) return sn_memory_failure(index->memory, size);
  clear_slots(slots, capacity);
  for (uint32_t i = 0; i < index->capacity; i++) {
    if (index->slots[i].id != SN_NO_ID) insert(slots, capacity, index->slots[i]);
  }
  sn_memory_free(index->memory, index->slots, (size_t)index->capacity * sizeof(*index->slots));
  index->slots = slots;
  index->capacity = capacity;
  return SN_OK;
}

sn_status sn_hash_index_reserve(sn_hash_index *index) {
  /* At most three slots in four are used: probes stay short, and there is always an empty slot to stop at. */
  if (index->count < index->capacity - index->capacity / 4) return SN_OK;
  return grow(index);
}

void sn_hash_index_put(sn_hash_index *index, uint32_t hash, uint32_t id) {
  sn_assert(id != SN_NO_ID);
  sn_assert(index->count < index->capacity - index->capacity / 4);
  insert(index->slots, index->capacity, (sn_hash_slot){.hash = hash, .id = id});
  index->count++;
}
