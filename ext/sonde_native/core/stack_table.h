/* stack_table: gives each distinct sequence of location ids a small id.
 *
 * Workload: many inserts, nearly all seen before; no removal; read once per flush.
 * Invariant: ids are dense, start at 0, and never change until sn_stack_table_reset().
 * Threads:   none inside; one owner at a time. Contexts: gvl, gc, nogvl. Not signal: intern may allocate.
 * Memory:    the table copies what it keeps; a full table answers SN_FULL and stays usable.
 */
#ifndef SONDE_CORE_STACK_TABLE_H
#define SONDE_CORE_STACK_TABLE_H

#include "base.h"
#include "hash_index.h"
#include "memory.h"
#include "status.h"

typedef struct sn_stack_ref {
  uint32_t offset; /* into words */
  uint32_t length;
} sn_stack_ref;

typedef struct sn_stack_table {
  sn_memory *memory; /* borrowed */
  sn_hash_index index;
  uint32_t *words; /* all stacks, end to end */
  uint32_t word_count, word_capacity;
  sn_stack_ref *stacks;
  uint32_t count, capacity;
} sn_stack_table;

/* Allocates nothing; always SN_OK. */
SN_MUST_USE sn_status sn_stack_table_init(sn_stack_table *table, sn_memory *memory);
void sn_stack_table_destroy(sn_stack_table *table);
/* Forgets everything, keeps a modest part of the storage. Never fails. */
void sn_stack_table_reset(sn_stack_table *table);

/* Finds or adds; on anything but SN_OK, *id is untouched and the table unchanged. n may be 0. */
SN_MUST_USE sn_status sn_stack_table_intern(sn_stack_table *table, const uint32_t *ids, uint32_t n, uint32_t *id);

/* For an owner that has its own index and knows that a stack is new: room for n words, to be filled and then pushed.
 * What was not pushed is as if it had never been. Do not mix with intern in one table: pushed stacks are not in the
 * index. */
SN_MUST_USE sn_status sn_stack_table_reserve(sn_stack_table *table, uint32_t n, uint32_t **room);
/* The id of the n words just written to the room. */
uint32_t sn_stack_table_push(sn_stack_table *table, uint32_t n);

/* Borrowed until the next change; NULL for the empty stack. */
static inline const uint32_t *sn_stack_table_get(const sn_stack_table *table, uint32_t id, uint32_t *length) {
  sn_assert(id < table->count);
  *length = table->stacks[id].length;
  return *length == 0 ? NULL : table->words + table->stacks[id].offset;
}

#endif
