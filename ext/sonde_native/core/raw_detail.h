/* raw_detail: what else tells rows of one stack and thread apart: the class of what was allocated, the cause of a
 * collection. Each distinct one gets a small id; id 0 is "nothing".
 *
 * The word of a class is a VALUE that only the VM layer understands; whoever keeps a table must mark it.
 * Threads: none inside; one owner at a time. Contexts: gvl, gc. Not signal: intern may allocate.
 */
#ifndef SONDE_CORE_RAW_DETAIL_H
#define SONDE_CORE_RAW_DETAIL_H

#include <stdatomic.h>

#include "base.h"
#include "hash_index.h"
#include "memory.h"
#include "status.h"

typedef enum sn_detail_kind {
  SN_DETAIL_NONE,
  SN_DETAIL_CLASS, /* word: the class of an allocated object */
  SN_DETAIL_LIVE,  /* the same of a living one; number: collections it has lived through */
  SN_DETAIL_GC     /* word: a collection's cause; number: its type; both as the VM layer counts them */
} sn_detail_kind;

typedef struct sn_raw_detail {
  uint64_t word;
  uint32_t kind;
  uint32_t number;
} sn_raw_detail;

typedef struct sn_detail_table {
  sn_memory *memory; /* borrowed */
  sn_hash_index index;
  sn_raw_detail *details; /* read by a marker too: see count */
  uint32_t capacity;
  _Atomic uint32_t count; /* published last, as raw_store's locations are */
} sn_detail_table;

/* With id 0 in it. */
SN_MUST_USE sn_status sn_detail_table_init(sn_detail_table *table, sn_memory *memory);
void sn_detail_table_destroy(sn_detail_table *table);
/* Forgets all but id 0, keeps a modest part of the storage. Never fails. */
void sn_detail_table_reset(sn_detail_table *table);

/* Finds or adds; 0 where it cannot be kept. */
uint32_t sn_detail_table_intern(sn_detail_table *table, sn_raw_detail detail);

#endif
