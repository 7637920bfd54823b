/* string_table: see string_table.h. Called by the profile, on the thread that owns it; no locks. */
#include "string_table.h"

#include <string.h>

#include "hash.h"
#include "utf8.h"

sn_status sn_string_table_init(sn_string_table *table, sn_memory *memory) {
  *table = (sn_string_table){.memory = memory};
  sn_arena_init(&table->arena, memory);
  sn_hash_index_init(&table->index, memory);
  uint32_t empty;
  const sn_status status = sn_string_table_intern(table, "", 0, &empty);
  if (status != SN_OK) sn_string_table_destroy(table);
  return status;
}

void sn_string_table_destroy(sn_string_table *table) {
  sn_arena_destroy(&table->arena);
  sn_hash_index_destroy(&table->index);
  sn_memory_free(table->memory, table->strings, table->capacity * sizeof(*table->strings));
  table->strings = NULL;
  table->count = table->capacity = 0;
}

static uint32_t find(const sn_string_table *table, uint32_t hash, const char *bytes, size_t length) {
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(&table->index, hash, &cursor)) != SN_NO_ID) {
    const sn_string *string = &table->strings[id];
    if (string->length == length && (length == 0 || memcmp(string->bytes, bytes, length) == 0)) return id;
  }
  return SN_NO_ID;
}

uint32_t sn_string_table_find(const sn_string_table *table, const char *bytes, size_t length) {
  return find(table, sn_hash_bytes(bytes, length), bytes, length);
}

static sn_status add(sn_string_table *table, uint32_t hash, const char *bytes, size_t length, uint32_t *id) {
  if (table->count == SN_NO_ID) return SN_FULL;
  char *copy;
  sn_status status = sn_hash_index_reserve(&table->index);
  if (status != SN_OK) return status;
  status = sn_memory_grow(table->memory, (void **)&table->strings, &table->capacity, table->count + 1,
                          sizeof(*table->strings));
  if (status != SN_OK) return status;
  status = sn_arena_alloc(&table->arena, length + 1, &copy);
  if (status != SN_OK) return status;
  if (length != 0) memcpy(copy, bytes, length);
  copy[length] = '\0';
  table->strings[table->count] = (sn_string){.bytes = copy, .length = (uint32_t)length};
  sn_hash_index_put(&table->index, hash, table->count);
  *id = table->count++;
  return SN_OK;
}

static sn_status intern_valid(sn_string_table *table, const char *bytes, size_t length, uint32_t *id) {
  if (length >= UINT32_MAX) return SN_TOO_LARGE;
  const uint32_t hash = sn_hash_bytes(bytes, length);
  const uint32_t found = find(table, hash, bytes, length);
  if (found == SN_NO_ID) return add(table, hash, bytes, length, id);
  *id = found;
  return SN_OK;
}

static sn_status intern_repaired(sn_string_table *table, const char *bytes, size_t length, uint32_t *id) {
  const size_t size = sn_utf8_repair(bytes, length, NULL);
  char *copy = sn_memory_alloc(table->memory, size);
  if (copy == NULL) return sn_memory_failure(table->memory, size);
  sn_utf8_repair(bytes, length, copy);
  const sn_status status = intern_valid(table, copy, size, id);
  sn_memory_free(table->memory, copy, size);
  return status;
}

sn_status sn_string_table_intern(sn_string_table *table, const char *bytes, size_t length, uint32_t *id) {
  if (length >= UINT32_MAX) return SN_TOO_LARGE;
  if (!sn_utf8_valid(bytes, length)) return intern_repaired(table, bytes, length, id);
  return intern_valid(table, bytes, length, id);
}
