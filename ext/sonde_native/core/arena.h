/* arena: bump allocation for things that die together. No free of single things.
 *
 * Threads: none inside; one owner at a time. Contexts: gvl, gc, nogvl. Not signal.
 */
#ifndef SONDE_CORE_ARENA_H
#define SONDE_CORE_ARENA_H

#include "base.h"
#include "memory.h"
#include "status.h"

typedef struct sn_arena_chunk sn_arena_chunk;

typedef struct sn_arena {
  sn_memory *memory;      /* borrowed */
  sn_arena_chunk *chunks; /* owned; the newest first */
  char *free;             /* in the newest chunk */
  size_t left;
  size_t next_size;
} sn_arena;

/* Allocates nothing. */
void sn_arena_init(sn_arena *arena, sn_memory *memory);
void sn_arena_destroy(sn_arena *arena);

/* size bytes without alignment, valid until destroy. On anything but SN_OK, *bytes is untouched. */
SN_MUST_USE sn_status sn_arena_alloc(sn_arena *arena, size_t size, char **bytes);

#endif
