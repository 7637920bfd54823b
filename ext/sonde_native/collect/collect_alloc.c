/* collect_alloc: see the header. Called at safepoints and by whoever opens, flushes or closes a window, with the GVL.
 * No lock: the worker and the jobs hand a window to each other by its state. */
#include "collect_alloc.h"

#include <stdio.h>
#include <string.h>

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_newobj.h"
#include "../vm/vm_object.h"
#include "../vm/vm_thread.h"
#include "collect_alloc_state.h"
#include "collect_heap.h"
#include "collect_debt.h"
#include "collect_heap.h"
#include "collect_stack.h"

sn_alloc_state sn_alloc;

void sn_alloc_job(void) {
  if (SN_LIKELY(!sn_alloc.on && !sn_alloc.stray)) return;
  if (!sn_vm_thread_in_main_ractor()) return;
  if (!sn_alloc.on) {
    sn_alloc.stray = false;
    sn_vm_newobj_off();
    return;
  }
  if (sn_alloc_window() == SN_WINDOW_CLOSING) sn_alloc_close(&sn_alloc.end);
  /* What is to be followed may not wait: a pick is marked until it is booked, and with a few collections meanwhile it
   * would grow old, and then live on until a major one. */
  if (sn_heap_is_on() && sn_alloc_window() == SN_WINDOW_IDLE) sn_alloc_book();
  if (sn_alloc.by_count) sn_alloc_count_job();
  if (sn_alloc_window() == SN_WINDOW_ASKED) sn_alloc_open();
  sn_heap_job();
}

bool sn_alloc_wants_job(void) {
  uint32_t now = atomic_load_explicit(&sn_alloc.state, memory_order_relaxed);
  return now == SN_WINDOW_ASKED || now == SN_WINDOW_CLOSING;
}

/* -- flush --------------------------------------------------------------------------------------------------------- */

void sn_alloc_look_around(void) {
  if (!sn_alloc.on) return;
  sn_alloc_cut(); /* what is picked is followed, which may run Ruby code */
  sn_alloc.other_ractors = sn_vm_newobj_other_ractors();
  if (sn_alloc.by_count || !sn_vm_newobj_compiled_code()) return;
  sn_alloc_cut(); /* YJIT was switched on: from now on by count */
  sn_alloc_move(SN_WINDOW_ASKED, SN_WINDOW_IDLE);
  sn_alloc.by_count = true;
}

void sn_alloc_force_by_count(bool by_count) {
  sn_alloc.forced_by_count = by_count && !sn_vm_events_needs_signal();
}

static double estimate(void) {
  if (sn_alloc.by_count) return sn_alloc.seen;
  double open = sn_alloc.open_sum + atomic_exchange(&sn_alloc.empty_sum, 0);
  return open > 0 ? sn_alloc.seen * (double)(sn_clock_monotonic() - sn_alloc.started) / open : 0;
}

static uint64_t count(void) {
  return sn_alloc.stopped ? sn_alloc.count_at_stop : sn_vm_newobj_count();
}

static void begin_slot(void) {
  memset(&sn_alloc.error, 0, sizeof sn_alloc.error);
  sn_alloc.seen = sn_alloc.open_sum = 0;
  sn_alloc.count_at_start = count();
  sn_alloc.started = sn_clock_monotonic();
}

/* Objects of which none was picked. */
static void give_row(void) {
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  sn_row_key key = {.stack = sn_stack_intern_special(store, SN_FRAME_NOT_SAMPLED)};
  sn_row *row = sn_raw_store_row(store, key);
  row->values[SN_ALLOC_SAMPLES] = SN_ALLOC_UNIT;
  row->values[SN_ALLOC_SIZE] = sn_alloc_units((double)sn_vm_object_slot_size());
  sn_recorder_leave(&sn_the_engine.recorder, store);
}

sn_alloc_result sn_alloc_settle(void) {
  sn_alloc_result result = {.total = 0};
  if (!sn_alloc.on) return result;
  sn_alloc_cut();
  uint64_t empty = atomic_exchange(&sn_alloc.empty, 0);
  sn_alloc.counts.windows += empty;
  sn_alloc.counts.empty += empty;
  sn_alloc.error.empty += empty;
  sn_alloc.error.estimated = estimate();
  uint64_t counted = count() - sn_alloc.count_at_start;
  sn_alloc.error.counted = sn_alloc.other_ractors ? 0 : (double)counted;
  result.total = sn_alloc.other_ractors ? (int64_t)sn_alloc.error.estimated : (int64_t)counted;
  if (sn_alloc.error.objects.sum > 0) {
    double factor = (double)result.total / sn_alloc.error.objects.sum;
    sn_alloc_error_scale(&sn_alloc.error, factor);
    sn_heap_scale(factor);
  } else if (result.total > 0) {
    give_row();
  }
  result.error = sn_alloc.error;
  begin_slot();
  return result;
}

/* What is rarer than 3 in n is missed by n looks with a chance of 5 %. */
void sn_alloc_describe(const sn_alloc_error *e, char *text, size_t size) {
  const char *counted = e->counted > 0 ? "" : " (not scaled to the VM's count, which has other Ractors' objects too)";
  unsigned long long looked = e->picks + e->scouts;
  snprintf(text, size,
           "alloc: %llu windows with objects, %llu without; worth %.1f equal ones for alloc-samples, %.1f for "
           "alloc-size; a share p has a standard error of sqrt(p (1 - p) / worth) at most; %.0f objects counted, %.0f "
           "estimated before scaling%s; the size of %llu was looked at: huge ones, if fewer than 1 in %llu, may have "
           "been missed",
           (unsigned long long)e->windows, (unsigned long long)e->empty, sn_alloc_sum_worth(&e->objects),
           sn_alloc_sum_worth(&e->bytes), e->counted, e->estimated, counted, looked, looked / 3 + 1);
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

/* A Ractor is about to be made, on a Ruby where that must not meet the hook. */
static void before_ractor(void) {
  if (!sn_alloc.on || sn_alloc.stopped) return;
  atomic_store(&sn_the_engine.watches_allocations, false);
  sn_alloc.stopped = true;
  sn_alloc.count_at_stop = sn_vm_newobj_count();
  sn_alloc.problem = sn_vm_newobj_refusal();
  sn_alloc_cut();
  sn_alloc_move(SN_WINDOW_ASKED, SN_WINDOW_IDLE);
}

const char *sn_alloc_refusal(void) {
  return sn_vm_newobj_refusal();
}

/* It is measured once in the life of a process. */
static VALUE measure_hook(VALUE unused) {
  static const sn_vm_newobj_callbacks callbacks = {.born = sn_alloc_born, .ractor = before_ractor};
  (void)unused;
  sn_vm_newobj_prepare(&callbacks);
  if (sn_alloc.hook_size_ns <= 0) {
    sn_alloc.hook_ns = sn_vm_newobj_cost();
    sn_alloc.sizes.any = true;
    sn_alloc.hook_size_ns = sn_vm_newobj_cost();
    if (sn_alloc.hook_size_ns < sn_alloc.hook_ns) sn_alloc.hook_size_ns = sn_alloc.hook_ns;
  }
  sn_alloc.by_count = sn_alloc.forced_by_count || sn_vm_newobj_compiled_code();
  return Qnil;
}

const char *sn_alloc_begin(void) {
  if (sn_alloc.on) return NULL;
  sn_alloc.stray = false;
  sn_vm_newobj_off();
  sn_alloc.problem = sn_vm_newobj_refusal();
  if (sn_alloc.problem) return sn_alloc.problem;
  int raised = 0;
  atomic_store(&sn_alloc.state, SN_WINDOW_OPEN); /* as in a window, but nothing is picked */
  sn_alloc.next_pick = sn_alloc.next_scout = UINT64_MAX;
  sn_alloc_sizes_clear(&sn_alloc.sizes);
  rb_protect(measure_hook, Qnil, &raised);
  atomic_store(&sn_alloc.state, SN_WINDOW_IDLE);
  sn_alloc_reset();
  if (raised) {
    sn_vm_newobj_off();
    rb_jump_tag(raised);
  }
  memset(&sn_alloc.counts, 0, sizeof sn_alloc.counts);
  sn_alloc.random = (uint64_t)sn_clock_monotonic() * 0x9E3779B97F4A7C15u | 1;
  atomic_store(&sn_alloc.gap_ns, SN_ALLOC_GAP_NS);
  atomic_store(&sn_alloc.empty_sum, 0);
  atomic_store(&sn_alloc.empty, 0);
  sn_alloc.pick_count = sn_alloc.scout_count = 0;
  sn_alloc.next_coin = SN_ALLOC_LEAST_COIN * 20;
  sn_alloc.stopped = sn_alloc.weighed = sn_alloc.again = false;
  sn_alloc.looked_count = sn_vm_newobj_count();
  sn_alloc.cuts = 0;
  sn_alloc.objects_a_second = sn_alloc.cuts_a_second = 0;
  sn_alloc.looked_at = sn_clock_monotonic();
  sn_alloc.cost_ns = sn_alloc.since_look = 0;
  begin_slot();
  sn_debt_begin();
  sn_alloc.on = true;
  atomic_store_explicit(&sn_the_engine.watches_allocations, true, memory_order_release);
  return NULL;
}

void sn_alloc_end(void) {
  atomic_store(&sn_the_engine.watches_allocations, false);
  if (sn_alloc.on) sn_alloc_cut();
  sn_alloc.on = false;
  sn_alloc.stray = false;
  sn_alloc.pick_count = sn_alloc.scout_count = 0;
  sn_vm_newobj_off();
  atomic_store(&sn_alloc.state, SN_WINDOW_IDLE);
}

bool sn_alloc_is_on(void) {
  return sn_alloc.on;
}

const char *sn_alloc_problem(void) {
  return sn_alloc.problem;
}

void sn_alloc_forget(void) {
  sn_alloc.stray = sn_vm_newobj_is_on();
  sn_alloc.on = false;
  atomic_store(&sn_the_engine.watches_allocations, false);
  sn_alloc.pick_count = sn_alloc.scout_count = 0;
  atomic_store(&sn_alloc.state, SN_WINDOW_IDLE);
}

sn_alloc_counts sn_alloc_counted(void) {
  sn_alloc_counts counts = sn_alloc.counts;
  counts.hook_ns = sn_alloc.hook_ns;
  counts.interval_ms = atomic_load(&sn_alloc.gap_ns) / 1e6;
  counts.coin = sn_alloc.next_coin;
  counts.by_count = sn_alloc.by_count;
  return counts;
}
