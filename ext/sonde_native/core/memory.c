/* memory: see memory.h. Called by everything that keeps something, on any thread but not in a signal handler; no locks.
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#ifdef SONDE_TESTING
enum { FIRST_CAPACITY = 2 }; /* tiny, so that tests grow often */
long sn_memory_testing_fail_after = -1;
#else
enum { FIRST_CAPACITY = 16 };
#endif

void sn_memory_init(sn_memory *memory, size_t limit) {
  memory->limit = limit;
  atomic_init(&memory->used, 0);
  atomic_init(&memory->peak, 0);
#ifdef SONDE_TESTING
  memory->fail_after = sn_memory_testing_fail_after;
#else
  memory->fail_after = -1;
#endif
}

static bool told_to_fail(sn_memory *memory) {
#ifdef SONDE_TESTING
  if (memory->fail_after == 0) return true;
  if (memory->fail_after > 0) memory->fail_after--;
#else
  (void)memory;
#endif
  return false;
}

static void raise_peak(sn_memory *memory, size_t used) {
  size_t peak = atomic_load_explicit(&memory->peak, memory_order_relaxed);
  while (used > peak && !atomic_compare_exchange_weak_explicit(&memory->peak, &peak, used, memory_order_relaxed,
                                                               memory_order_relaxed)) {
  }
}

/* Books first and gives back if that was too much: two threads can then never pass the limit together. */
static bool claim(sn_memory *memory, size_t size) {
  const size_t before = atomic_fetch_add_explicit(&memory->used, size, memory_order_relaxed);
  const size_t after = before + size;
  if (after < before || (memory->limit != 0 && after > memory->limit)) {
    atomic_fetch_sub_explicit(&memory->used, size, memory_order_relaxed);
    return false;
  }
  raise_peak(memory, after);
  return true;
}

static void give_back(sn_memory *memory, size_t size) {
  atomic_fetch_sub_explicit(&memory->used, size, memory_order_relaxed);
}

void *sn_memory_alloc(sn_memory *memory, size_t size) {
  return sn_memory_realloc(memory, NULL, 0, size);
}

void *sn_memory_realloc(sn_memory *memory, void *old, size_t old_size, size_t new_size) {
  sn_assert(new_size > 0);
  sn_assert((old == NULL) == (old_size == 0));
  if (told_to_fail(memory)) return NULL;
  if (new_size > old_size && !claim(memory, new_size - old_size)) return NULL;
  void *block = realloc(old, new_size);
  if (block == NULL && new_size > old_size) give_back(memory, new_size - old_size);
  if (block != NULL && new_size < old_size) give_back(memory, old_size - new_size);
  return block;
}

void sn_memory_free(sn_memory *memory, void *block, size_t size) {
  if (block == NULL) return;
  free(block);
  give_back(memory, size);
}

bool sn_memory_over_limit(const sn_memory *memory, size_t more) {
  const size_t used = atomic_load_explicit(&memory->used, memory_order_relaxed);
  if (more > SIZE_MAX - used) return true;
  return memory->limit != 0 && used + more > memory->limit;
}

/* Arrays come as pointers to pointers of any type; copying the pointer keeps the aliasing rules. */
static void *load_pointer(void **array) {
  void *pointer;
  memcpy(&pointer, array, sizeof(pointer));
  return pointer;
}

static sn_status resize(sn_memory *memory, void **array, size_t *capacity, size_t wanted, size_t element_size) {
  if (wanted > SIZE_MAX / element_size) return SN_FULL;
  const size_t old_size = *capacity * element_size;
  const size_t new_size = wanted * element_size;
  void *block = sn_memory_realloc(memory, load_pointer(array), old_size, new_size);
  if (block == NULL) return sn_memory_failure(memory, new_size - old_size);
  memcpy(array, &block, sizeof(block));
  *capacity = wanted;
  return SN_OK;
}

static sn_status grow_below(sn_memory *memory, void **array, size_t *capacity, size_t need, size_t element_size,
                            size_t most) {
  if (need <= *capacity) return SN_OK;
  if (need > most) return SN_FULL;
  size_t wanted = *capacity > most / 2 ? most : *capacity * 2;
  if (wanted < FIRST_CAPACITY) wanted = FIRST_CAPACITY;
  if (wanted < need) wanted = need;
  const sn_status status = resize(memory, array, capacity, wanted, element_size);
  if (status != SN_FULL) return status;
  /* The limit is near. An eighth more still makes few copies, and uses what is left. */
  const size_t modest = need > most - need / 8 ? need : need + need / 8;
  return modest < wanted ? resize(memory, array, capacity, modest, element_size) : status;
}

sn_status sn_memory_grow_large(sn_memory *memory, void **array, size_t *capacity, size_t need, size_t element_size) {
  return grow_below(memory, array, capacity, need, element_size, SIZE_MAX / element_size);
}

sn_status sn_memory_grow(sn_memory *memory, void **array, uint32_t *capacity, uint32_t need, size_t element_size) {
  size_t large = *capacity;
  const sn_status status = grow_below(memory, array, &large, need, element_size, UINT32_MAX);
  *capacity = (uint32_t)large;
  return status;
}

void sn_memory_trim(sn_memory *memory, void **array, uint32_t *capacity, uint32_t keep, size_t element_size) {
  if (*capacity <= keep) return;
  void *block = keep == 0 ? NULL : sn_memory_alloc(memory, keep * element_size);
  if (keep != 0 && block == NULL) return;
  void *old = load_pointer(array);
  const size_t old_size = *capacity * element_size;
  *capacity = keep;
  atomic_thread_fence(memory_order_release);
  memcpy(array, &block, sizeof(block));
  atomic_thread_fence(memory_order_release);
  sn_memory_free(memory, old, old_size);
}
