/* memory: the only calls of malloc, realloc and free in the core; an account with a limit; failure injection.
 *
 * Contexts: gvl, gc, nogvl. Not signal. Threads: `used` and `peak` are atomic, so several threads may share an account;
 * a block belongs to one owner. Callers pass the size back, so that no header is needed.
 */
#ifndef SONDE_CORE_MEMORY_H
#define SONDE_CORE_MEMORY_H

#include <stdatomic.h>

#include "base.h"
#include "status.h"

typedef struct sn_memory {
  size_t limit; /* bytes; 0: none */
  _Atomic size_t used;
  _Atomic size_t peak;
  long fail_after; /* testing: the allocation with this number (counting down) and all later ones fail; < 0: never */
} sn_memory;

#ifdef SONDE_TESTING
/* What sn_memory_init puts into fail_after; for accounts that a test cannot reach before they are used. */
extern long sn_memory_testing_fail_after;
#endif

void sn_memory_init(sn_memory *memory, size_t limit);

/* NULL where the limit or the C library says no (sn_memory_over_limit tells which). size > 0. Not zeroed. */
SN_MUST_USE void *sn_memory_alloc(sn_memory *memory, size_t size);
/* NULL as above; then the old block is untouched and still owned. old may be NULL (old_size 0). */
SN_MUST_USE void *sn_memory_realloc(sn_memory *memory, void *old, size_t old_size, size_t new_size);
/* block may be NULL. */
void sn_memory_free(sn_memory *memory, void *block, size_t size);
/* Whether `more` bytes would pass the limit. */
bool sn_memory_over_limit(const sn_memory *memory, size_t more);

/* Which status an allocation of `more` bytes that gave NULL stands for. */
static inline sn_status sn_memory_failure(const sn_memory *memory, size_t more) {
  return sn_memory_over_limit(memory, more) ? SN_FULL : SN_NO_MEMORY;
}

/* Grows an array of *capacity elements so that it holds at least `need` (doubling, overflow checked; near the limit by
 * less). SN_OK, SN_FULL (limit) or SN_NO_MEMORY; on failure nothing has changed. */
SN_MUST_USE sn_status sn_memory_grow(sn_memory *memory, void **array, uint32_t *capacity, uint32_t need,
                                     size_t element_size);
/* The same for arrays that may hold more than 2^32 elements. */
SN_MUST_USE sn_status sn_memory_grow_large(sn_memory *memory, void **array, size_t *capacity, size_t need,
                                           size_t element_size);

/* Replaces an array of more than `keep` elements by one of `keep` (0: none), whose contents are undefined. Never fails:
 * where the C library refuses the small block, the large one stays. Pointer and capacity fit together at every moment,
 * so that a process forked meanwhile by another thread may go on using its copy of the array. */
void sn_memory_trim(sn_memory *memory, void **array, uint32_t *capacity, uint32_t keep, size_t element_size);

#endif
