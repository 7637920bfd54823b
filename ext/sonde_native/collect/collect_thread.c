/* collect_thread: see the header. Entries are registered and let go with the GVL; the worker only reads the list. */
#include "collect_thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../vm/vm_layout.h"
#include "../vm/vm_thread.h"

sn_thread_registry sn_threads;
static size_t entry_bytes;

bool sn_threads_init(void) {
  /* Only the pages in use are ever touched, and the list never moves under the worker. */
  void *list = mmap(NULL, SN_THREAD_LIMIT * sizeof(sn_thread *), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (list == MAP_FAILED) return false;
  sn_threads.entries = list;
  return true;
}

void sn_threads_begin(void) {
  sn_threads.epoch++;
  sn_vm_thread_clear_data();
}

void sn_threads_end(void) {
  while (atomic_load(&sn_threads.count) > 0) {
    sn_thread *t = atomic_load(&sn_threads.entries[0]);
    atomic_store(&t->listed, false);
    sn_thread_release(t);
  }
  /* The worker of a parent process may have been inside one. */
  for (sn_thread *t = sn_threads.free_list; t; t = t->next_free) sn_due_unlock(&t->due);
  sn_vm_thread_clear_data();
}

sn_thread *sn_thread_of(VALUE thread) {
  sn_thread *t = sn_vm_thread_data(thread);
  return t && t->thread == thread && t->epoch == sn_threads.epoch ? t : NULL;
}

static sn_thread *take_free(void) {
  sn_thread *t = sn_threads.free_list;
  if (t) {
    sn_threads.free_list = t->next_free;
    /* Not the due's lock: the worker may be in it. */
    uint32_t lock = atomic_load(&t->due.lock);
    memset(t, 0, sizeof *t);
    atomic_store(&t->due.lock, lock);
    return t;
  }
  t = calloc(1, sizeof *t);
  if (t) entry_bytes += sizeof *t;
  return t;
}

sn_thread *sn_thread_register(VALUE thread) {
  uint32_t count = atomic_load_explicit(&sn_threads.count, memory_order_relaxed);
  sn_thread *t = count < SN_THREAD_LIMIT ? take_free() : NULL;
  if (!t) {
    sn_threads.refused++;
    return NULL;
  }
  t->thread = thread;
  t->epoch = sn_threads.epoch;
  t->number = ++sn_threads.last_number ? sn_threads.last_number : ++sn_threads.last_number;
  t->position = count;
  t->vm_address = sn_vm_layout_thread_struct(thread);
  atomic_store_explicit(&sn_threads.entries[count], t, memory_order_release);
  atomic_store_explicit(&sn_threads.count, count + 1, memory_order_release);
  sn_vm_thread_set_data(thread, t);
  return t;
}

void sn_thread_release(sn_thread *t) {
  uint32_t last = atomic_load_explicit(&sn_threads.count, memory_order_relaxed) - 1;
  sn_thread *moved = atomic_load(&sn_threads.entries[last]);
  moved->position = t->position;
  atomic_store_explicit(&sn_threads.entries[t->position], moved, memory_order_release);
  atomic_store_explicit(&sn_threads.count, last, memory_order_release);
  t->epoch = 0;
  t->thread = Qfalse;
  atomic_store(&t->tid, 0);
  atomic_store(&t->phase, SN_PHASE_DEAD);
  t->next_free = sn_threads.free_list;
  sn_threads.free_list = t;
}

void sn_threads_mark(void) {
  uint32_t count = atomic_load(&sn_threads.count);
  for (uint32_t i = 0; i < count; i++) rb_gc_mark(atomic_load(&sn_threads.entries[i])->thread);
}

size_t sn_threads_memory(void) {
  return entry_bytes;
}

int64_t sn_due_burned(int64_t gap, int64_t cpu, int64_t elapsed) {
  enum { SOON_NS = 500000, SWITCH_NS = 80000 };
  if (cpu >= elapsed) return gap;
  if (elapsed < SOON_NS) return cpu * 2 >= elapsed ? gap : 0;
  if (cpu * 2 < elapsed) cpu -= SWITCH_NS; /* it was off its CPU: coming back costs, and is no work of the stack */
  return cpu > 0 ? (int64_t)((double)gap * (double)cpu / (double)elapsed) : 0;
}

bool sn_due_try_lock(sn_due *due, uint32_t attempts) {
  for (uint32_t i = 0; i < attempts; i++) {
    uint32_t expected = 0;
    if (atomic_compare_exchange_weak_explicit(&due->lock, &expected, 1, memory_order_acquire, memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

void sn_due_unlock(sn_due *due) {
  atomic_store_explicit(&due->lock, 0, memory_order_release);
}
