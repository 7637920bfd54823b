/* collect_alloc_time: when windows are, as far as the worker says it. Runs on the worker; no lock. */
#include <math.h>

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "collect_alloc_state.h"
#include "collect_worker.h"

static const double TICK_NS = 5e6; /* by count: mean time between cuts by jobs */

enum {
  WINDOW_NS = 300000,    /* a window of time lasts so long, our own work in it not counted, */
  LONGEST_NS = 1500000,  /* but never longer than this */
  SHORT_NS = 20000,      /* what is not worth another sleep */
  ASK_AGAIN_NS = 1000000 /* for the job that closes it */
};

/* -- by time: the worker ------------------------------------------------------------------------------------------- */

static struct {
  int64_t next;            /* 0: nothing is planned */
  bool closing;            /* what was asked for last is that a window closes */
  const sn_thread *opener; /* who had the GVL when a window was asked for, */
  int64_t opener_cpu;      /* and its CPU clock then */
  uint64_t random;
} me;

static int64_t exponential(double mean) {
  return (int64_t)(-mean * log(sn_alloc_uniform(&me.random)));
}

static void plan(int64_t now) {
  me.next = now + exponential(atomic_load_explicit(&sn_alloc.gap_ns, memory_order_relaxed));
}

static bool read_cpu(const sn_thread *t, int64_t *cpu) {
  return sn_clock_cpu_of(atomic_load_explicit(&t->tid, memory_order_acquire), cpu);
}

/* On a busy machine a program may have had a CPU for a part of the window only. That is known if one thread was at work
 * at both ends. */
static int64_t running_time(const sn_thread *t, int64_t length) {
  int64_t cpu;
  if (!t || t != me.opener || !read_cpu(t, &cpu)) return length;
  int64_t ran = cpu - me.opener_cpu;
  return ran < length ? ran : length;
}

static void ask_to_open(void) {
  sn_thread *t = sn_worker_holder();
  me.opener = t && read_cpu(t, &me.opener_cpu) ? t : NULL;
  sn_alloc.asked_gap_ns = atomic_load_explicit(&sn_alloc.gap_ns, memory_order_relaxed);
  atomic_store_explicit(&sn_alloc.asked_at, sn_clock_monotonic(), memory_order_relaxed);
  if (!sn_alloc_move(SN_WINDOW_IDLE, SN_WINDOW_ASKED)) return;
  if (t) sn_worker_ask(t);
}

static void nobody_came(int64_t now) {
  int64_t length = now - atomic_load_explicit(&sn_alloc.asked_at, memory_order_relaxed);
  double sum = atomic_load_explicit(&sn_alloc.empty_sum, memory_order_relaxed);
  atomic_store_explicit(&sn_alloc.empty_sum, sum + (double)length * sn_alloc.asked_gap_ns / SN_ALLOC_GAP_NS,
                        memory_order_relaxed);
  atomic_fetch_add_explicit(&sn_alloc.empty, 1, memory_order_relaxed);
  plan(now);
}

/* A stretch without a safepoint is seen if it begins in the window. So that the chance of that is the same for each,
 * whatever was allocated before it, windows have one length in the program's own time: our work in them is added. */
static bool goes_on(int64_t now, const sn_window_end *end) {
  int64_t left = WINDOW_NS - (int64_t)sn_alloc_length(end);
  int64_t begun = atomic_load_explicit(&sn_alloc.asked_at, memory_order_relaxed);
  if (left < SHORT_NS || now - begun >= LONGEST_NS) return false;
  me.next = now + left;
  return true;
}

static void ask_to_close(int64_t now) {
  sn_thread *t = sn_worker_holder();
  sn_window_end end = sn_alloc_end_now();
  end.ran_ns = running_time(t, end.ran_ns);
  if (goes_on(now, &end)) return;
  sn_alloc.end = end;
  atomic_store_explicit(&sn_alloc.inside, t ? t->thread : Qfalse, memory_order_relaxed);
  plan(now);
  if (!sn_alloc_move(SN_WINDOW_OPEN, SN_WINDOW_CLOSING)) return; /* a flush was faster */
  if (t) sn_worker_ask(t);
  /* Where a signal is needed nobody but us can ask a second time; elsewhere the hook and those who come back do. */
  me.closing = sn_vm_events_needs_signal();
  if (me.closing) me.next = now + ASK_AGAIN_NS;
}

static void act_by_time(int64_t now) {
  switch (sn_alloc_window()) {
    case SN_WINDOW_IDLE:
      if (me.closing) {
        plan(now);
      } else {
        ask_to_open();
        me.next = now + WINDOW_NS;
      }
      me.closing = false;
      break;
    case SN_WINDOW_ASKED:
      sn_alloc_move(SN_WINDOW_ASKED, SN_WINDOW_IDLE) ? nobody_came(now) : ask_to_close(now);
      break;
    case SN_WINDOW_OPEN:
      ask_to_close(now);
      break;
    default: /* closing */
      sn_worker_ask(sn_worker_holder());
      me.next = now + ASK_AGAIN_NS;
  }
}

/* -- by count ------------------------------------------------------------------------------------------------------ */

static void act_by_count(int64_t now) {
  sn_thread *t = sn_worker_holder();
  me.next = now + exponential(TICK_NS);
  if (!t) return;
  atomic_store_explicit(&sn_alloc.tick, true, memory_order_release);
  sn_worker_ask(t);
}

static bool is_watched(void) {
  return atomic_load_explicit(&sn_the_engine.watches_allocations, memory_order_acquire);
}

int64_t sn_alloc_next_time(void) {
  return is_watched() ? me.next : INT64_MAX;
}

void sn_alloc_act(int64_t now) {
  if (!is_watched()) {
    me.next = 0;
  } else if (me.next == 0) {
    if (me.random == 0) me.random = (uint64_t)now * 0x9E3779B97F4A7C15u | 1;
    me.closing = false;
    plan(now);
  } else if (now >= me.next) {
    sn_alloc.by_count ? act_by_count(now) : act_by_time(now);
  }
}
