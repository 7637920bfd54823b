/* string_table: gives each distinct text a small id; id 0 is "".
 *
 * Texts are valid UTF-8 and end with a NUL beyond their length: what is not valid is repaired on the way in.
 * Workload: tens of thousands of names and paths, most of them seen before; no removal.
 * Threads:  none inside; one owner at a time. Contexts: gvl, nogvl. Not signal.
 * Memory:   copies what it keeps; a full table answers SN_FULL and stays usable.
 */
#ifndef SONDE_CORE_STRING_TABLE_H
#define SONDE_CORE_STRING_TABLE_H

#include "arena.h"
#include "base.h"
#include "hash_index.h"
#include "memory.h"
#include "status.h"

typedef struct sn_string {
  const char *bytes; /* in the arena */
  uint32_t length;
} sn_string;

typedef struct sn_string_table {
  sn_memory *memory; /* borrowed */
  sn_arena arena;
  sn_hash_index index;
  sn_string *strings;
  uint32_t count, capacity;
} sn_string_table;

/* On failure there is nothing to destroy (though destroying does no harm). */
SN_MUST_USE sn_status sn_string_table_init(sn_string_table *table, sn_memory *memory);
void sn_string_table_destroy(sn_string_table *table);

/* Finds or adds; on anything but SN_OK, *id is untouched and the table unchanged. SN_TOO_LARGE past 2^32 bytes. */
SN_MUST_USE sn_status sn_string_table_intern(sn_string_table *table, const char *bytes, size_t length, uint32_t *id);
/* The id of exactly these bytes, or SN_NO_ID. */
uint32_t sn_string_table_find(const sn_string_table *table, const char *bytes, size_t length);

/* Borrowed until destroy. */
static inline const char *sn_string_table_get(const sn_string_table *table, uint32_t id, size_t *length) {
  sn_assert(id < table->count);
  *length = table->strings[id].length;
  return table->strings[id].bytes;
}

#endif
