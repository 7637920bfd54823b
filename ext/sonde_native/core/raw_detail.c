/* raw_detail: see raw_detail.h. Called by the sampler with the GVL and by the serialiser after a flip; the recorder's
 * slot lock keeps the two apart. */
#include "raw_detail.h"

#include "hash.h"

enum { KEEP_DETAILS = 1024, KEEP_SLOTS = 2048 };

static uint32_t count_of(const sn_detail_table *table) {
  return atomic_load_explicit(&table->count, memory_order_relaxed);
}

/* Written first and counted last: a GC mark function may walk the counted ones. */
static bool add(sn_detail_table *table, uint32_t hash, sn_raw_detail detail) {
  const uint32_t count = count_of(table);
  if (count == SN_NO_ID) return false;
  if (sn_hash_index_reserve(&table->index) != SN_OK) return false;
  if (sn_memory_grow(table->memory, (void **)&table->details, &table->capacity, count + 1, sizeof(*table->details)) !=
      SN_OK) {
    return false;
  }
  table->details[count] = detail;
  atomic_store_explicit(&table->count, count + 1, memory_order_release);
  sn_hash_index_put(&table->index, hash, count);
  return true;
}

uint32_t sn_detail_table_intern(sn_detail_table *table, sn_raw_detail detail) {
  const uint32_t hash = sn_hash_pair(detail.word, detail.kind | (uint64_t)detail.number << 32);
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&table->index, hash, &cursor)) != SN_NO_ID) {
    const sn_raw_detail *known = &table->details[id];
    if (known->word == detail.word && known->kind == detail.kind && known->number == detail.number) return id;
  }
  const uint32_t next = count_of(table);
  return add(table, hash, detail) ? next : 0;
}

sn_status sn_detail_table_init(sn_detail_table *table, sn_memory *memory) {
  *table = (sn_detail_table){.memory = memory};
  atomic_init(&table->count, 0);
  sn_hash_index_init(&table->index, memory);
  const sn_raw_detail nothing = {.kind = SN_DETAIL_NONE};
  return add(table, sn_hash_pair(0, 0), nothing) ? SN_OK : SN_NO_MEMORY;
}

void sn_detail_table_destroy(sn_detail_table *table) {
  atomic_store_explicit(&table->count, 0, memory_order_relaxed);
  sn_hash_index_destroy(&table->index);
  sn_memory_free(table->memory, table->details, table->capacity * sizeof(*table->details));
  table->details = NULL;
  table->capacity = 0;
}

void sn_detail_table_reset(sn_detail_table *table) {
  atomic_store_explicit(&table->count, 0, memory_order_relaxed);
  sn_hash_index_reset(&table->index, KEEP_SLOTS);
  sn_memory_trim(table->memory, (void **)&table->details, &table->capacity, KEEP_DETAILS, sizeof(*table->details));
  const sn_raw_detail nothing = {.kind = SN_DETAIL_NONE};
  const bool kept = add(table, sn_hash_pair(0, 0), nothing);
  sn_assert(kept);
  (void)kept;
}
