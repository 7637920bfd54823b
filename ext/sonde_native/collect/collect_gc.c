/* collect_gc: see the header. The hooks run on the thread that collects, with the GVL; no lock. */
#include "collect_gc.h"

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_gc.h"
#include "../vm/vm_thread.h"
#include "collect_alloc.h"
#include "collect_sample.h"
#include "collect_stack.h"

static sn_thread *collecting_thread(void) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed)) return NULL;
  return sn_thread_of(rb_thread_current());
}

void sn_gc_enter(void) {
  sn_thread *t = collecting_thread();
  if (!t) return;
  if (t->due.pending) sn_sample_serve(t, SN_SERVE_PLAIN);
  sn_alloc_gc_enter();
  atomic_fetch_add_explicit(&sn_the_engine.collections, 1, memory_order_relaxed);
  sn_the_engine.gc_entered = sn_clock_monotonic();
  atomic_store_explicit(&sn_the_engine.in_gc, true, memory_order_release);
}

void sn_gc_exit(void) {
  sn_thread *t = collecting_thread();
  if (!t || !atomic_exchange_explicit(&sn_the_engine.in_gc, false, memory_order_acq_rel)) return;
  sn_the_engine.gc_time += sn_clock_monotonic() - sn_the_engine.gc_entered;
  if (t->due.pending) sn_sample_serve(t, SN_SERVE_GC);
}

uint32_t sn_gc_detail(sn_raw_store *store) {
  sn_vm_gc_kind kind = sn_vm_gc_latest();
  return sn_detail_table_intern(&store->details,
                                (sn_raw_detail){.word = kind.cause, .kind = SN_DETAIL_GC, .number = kind.type});
}

void sn_gc_begin(void) {
  sn_vm_gc_init();
  atomic_store(&sn_the_engine.in_gc, false);
  sn_the_engine.gc_time = 0;
  sn_the_engine.gc_total_at_start = sn_vm_events_gc_total_time();
}

/* Pauses too short for any instant still have their total: it gets a row of its own. */
static void give_row(void) {
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  for (uint32_t i = 0; i < store->row_count; i++) {
    if (store->rows[i].values[SN_GC_TIME] > 0) {
      sn_recorder_leave(&sn_the_engine.recorder, store);
      return;
    }
  }
  sn_row_key key = {.stack = sn_stack_intern_special(store, SN_FRAME_GC), .detail = sn_gc_detail(store)};
  sn_raw_store_add(store, key, SN_GC_TIME, 1);
  sn_recorder_leave(&sn_the_engine.recorder, store);
}

int64_t sn_gc_settle(int64_t total_now) {
  sn_engine *e = &sn_the_engine;
  int64_t by_hooks = e->gc_time;
  int64_t by_vm = total_now < 0 ? -1 : total_now - e->gc_total_at_start;
  e->gc_time = 0;
  e->gc_total_at_start = total_now;
  int64_t time = by_vm > 0 ? by_vm : by_hooks > 0 ? by_hooks : by_vm;
  if (time > 0) give_row();
  return time;
}
