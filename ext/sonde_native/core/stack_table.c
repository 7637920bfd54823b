/* stack_table: see stack_table.h. Called by the raw store (sampler, under its slot's lock) and by the profile (the
 * thread that owns it); takes no locks. */
#include "stack_table.h"

#include <string.h>

#include "hash.h"

/* What a reset keeps: about a quarter of a megabyte of words. */
enum { KEEP_WORDS = 64 * 1024, KEEP_STACKS = 4096, KEEP_SLOTS = 8192 };

sn_status sn_stack_table_init(sn_stack_table *table, sn_memory *memory) {
  *table = (sn_stack_table){.memory = memory};
  sn_hash_index_init(&table->index, memory);
  return SN_OK;
}

void sn_stack_table_destroy(sn_stack_table *table) {
  sn_hash_index_destroy(&table->index);
  sn_memory_free(table->memory, table->words, table->word_capacity * sizeof(*table->words));
  sn_memory_free(table->memory, table->stacks, table->capacity * sizeof(*table->stacks));
  *table = (sn_stack_table){.memory = table->memory};
  sn_hash_index_init(&table->index, table->memory);
}

void sn_stack_table_reset(sn_stack_table *table) {
  table->count = 0;
  table->word_count = 0;
  sn_hash_index_reset(&table->index, KEEP_SLOTS);
  sn_memory_trim(table->memory, (void **)&table->words, &table->word_capacity, KEEP_WORDS, sizeof(*table->words));
  sn_memory_trim(table->memory, (void **)&table->stacks, &table->capacity, KEEP_STACKS, sizeof(*table->stacks));
}

sn_status sn_stack_table_reserve(sn_stack_table *table, uint32_t n, uint32_t **room) {
  if (table->count == SN_NO_ID || n > UINT32_MAX - table->word_count) return SN_FULL;
  sn_status status = sn_memory_grow(table->memory, (void **)&table->stacks, &table->capacity, table->count + 1,
                                    sizeof(*table->stacks));
  if (status != SN_OK) return status;
  status = sn_memory_grow(table->memory, (void **)&table->words, &table->word_capacity, table->word_count + n,
                          sizeof(*table->words));
  if (status != SN_OK) return status;
  *room = n == 0 ? NULL : table->words + table->word_count;
  return SN_OK;
}

uint32_t sn_stack_table_push(sn_stack_table *table, uint32_t n) {
  sn_assert(table->count < table->capacity && n <= table->word_capacity - table->word_count);
  table->stacks[table->count] = (sn_stack_ref){.offset = table->word_count, .length = n};
  table->word_count += n;
  return table->count++;
}

static uint32_t find(const sn_stack_table *table, uint32_t hash, const uint32_t *ids, uint32_t n) {
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&table->index, hash, &cursor)) != SN_NO_ID) {
    const sn_stack_ref ref = table->stacks[id];
    if (ref.length == n && (n == 0 || memcmp(table->words + ref.offset, ids, n * sizeof(*ids)) == 0)) return id;
  }
  return SN_NO_ID;
}

sn_status sn_stack_table_intern(sn_stack_table *table, const uint32_t *ids, uint32_t n, uint32_t *id) {
  const uint32_t hash = sn_hash_words(ids, n);
  const uint32_t found = find(table, hash, ids, n);
  if (found != SN_NO_ID) {
    *id = found;
    return SN_OK;
  }
  uint32_t *room;
  sn_status status = sn_hash_index_reserve(&table->index);
  if (status != SN_OK) return status;
  status = sn_stack_table_reserve(table, n, &room);
  if (status != SN_OK) return status;
  if (n != 0) memcpy(room, ids, n * sizeof(*ids));
  *id = sn_stack_table_push(table, n);
  sn_hash_index_put(&table->index, hash, *id);
  return SN_OK;
}
