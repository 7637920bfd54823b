/* collect_sample: see the header. Runs on application threads, with the GVL (sn_sample_ready and sn_sample_exited
 * excepted: they only store into the thread's entry). Takes no lock but the bounded try on a thread's due and the
 * slot's own. */
#include "collect_sample.h"

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_features.h"
#include "../vm/vm_layout.h"
#include "../vm/vm_thread.h"
#include "collect_alloc.h"
#include "collect_gc.h"
#include "collect_labels.h"
#include "collect_stack.h"
#include "collect_watch.h"
#include "collect_worker.h"

enum {
  DUE_ATTEMPTS = 200,
  /* What waking up and taking the GVL costs a thread: it was not burned by the call that it was blocked in. */
  WAKING_CPU_NS = 80000,
  /* A thread whose clock stands below this when it first runs was born with its native thread: all of it is its own. */
  NEWBORN_CPU_NS = 5000000
};

static const char *own_directory = "";
static size_t own_directory_length;

void sn_sample_set_own_directory(const char *path, size_t length) {
  own_directory = path;
  own_directory_length = length;
}

/* -- rows ---------------------------------------------------------------------------------------------------------- */

static sn_row *row_of(sn_raw_store *store, sn_thread *t, uint32_t stack, sn_thread_state state, uint32_t detail) {
  sn_row_key key = {
      .stack = stack, .thread = t->number, .labels = sn_labels_of(t), .state = (uint32_t)state, .detail = detail};
  return sn_raw_store_row(store, key);
}

static void book_wall_of(sn_raw_store *store, sn_thread *t, uint32_t stack, sn_thread_state state, uint32_t detail,
                         int64_t ns, int64_t samples) {
  if (ns <= 0) return;
  sn_row *row = row_of(store, t, stack, state, detail);
  row->values[SN_WALL_TIME] += ns;
  row->values[SN_WALL_SAMPLES] += samples;
}

static void book_wall(sn_raw_store *store, sn_thread *t, uint32_t stack, sn_thread_state state, int64_t ns,
                      int64_t samples) {
  book_wall_of(store, t, stack, state, 0, ns, samples);
}

static void book_cpu(sn_raw_store *store, sn_thread *t, uint32_t stack, sn_thread_state state, int64_t weight,
                     int64_t samples) {
  if (weight <= 0) return;
  sn_row *row = row_of(store, t, stack, state, 0);
  row->values[SN_CPU_TIME] += weight;
  row->values[SN_CPU_SAMPLES] += samples;
}

static void book_gc(sn_raw_store *store, sn_thread *t, uint32_t stack, sn_thread_state state, uint32_t detail,
                    int64_t weight, int64_t samples) {
  if (weight <= 0) return;
  sn_row *row = row_of(store, t, stack, state, detail);
  row->values[SN_CPU_TIME] += weight;
  row->values[SN_CPU_SAMPLES] += samples;
  row->values[SN_GC_TIME] += weight;
}

/* All that was waited and is in no slot yet: to the stack that was read last. */
static void book_gvl_wait(sn_raw_store *store, sn_thread *t, uint32_t stack, int64_t samples) {
  if (t->gvl_pending <= 0) return;
  sn_row *row = row_of(store, t, stack, SN_STATE_GVL_WAIT, 0);
  row->values[SN_GVL_WAIT_TIME] += t->gvl_pending;
  row->values[SN_WALL_TIME] += t->gvl_pending;
  row->values[SN_WALL_SAMPLES] += samples;
  t->gvl_pending = 0;
}

static void remember_stack(sn_thread *t, uint32_t stack, bool burning) {
  t->last_stack = stack;
  t->last_labels = sn_labels_last(t);
  t->last_generation = sn_the_engine.generation;
  if (!burning) return;
  t->burn_stack = stack;
  t->burn_labels = sn_labels_of(t);
  t->burn_generation = sn_the_engine.generation;
  if (t->seen) return;
  t->seen = true;
  sn_worker_unseen_stops();
}

static int64_t ticks_since(sn_thread *t) {
  uint64_t tick = atomic_load_explicit(&sn_the_engine.tick, memory_order_relaxed);
  uint64_t since = tick - t->tick_booked;
  t->tick_booked = tick;
  return (int64_t)since;
}

/* Time by the wall clock: of a thread that was preempted in between it says too much, so one sample is taken for a
 * quarter of a millisecond at most, more than any costs. */
static void count_time(int64_t began) {
  const uint64_t most = 250000;
  uint64_t took = (uint64_t)(sn_clock_monotonic() - began);
  sn_count(&sn_the_engine.counters.job_ns, took < most ? took : most);
  sn_count_max(&sn_the_engine.counters.longest_pause_ns, took);
}

/* -- instants at which the thread had the GVL ---------------------------------------------------------------------- */

static bool take_due(sn_thread *t, sn_due *taken) {
  if (!sn_due_try_lock(&t->due, DUE_ATTEMPTS)) {
    sn_count(&sn_the_engine.counters.contended, 1);
    return false;
  }
  bool pending = t->due.pending;
  *taken = t->due;
  t->due.pending = false;
  t->due.look = false;
  for (int i = 0; i < 2; i++) t->due.confirmed[i] = t->due.confirmed_count[i] = 0;
  sn_due_unlock(&t->due);
  return pending;
}

/* Others use the CPU as well: for some time the worker asks how long threads waited. */
static void note_crowd(void) {
  enum { INSTANTS = 64 };
  uint64_t tick = atomic_load_explicit(&sn_the_engine.tick, memory_order_relaxed);
  atomic_store_explicit(&sn_the_engine.crowded_until, tick + INSTANTS, memory_order_relaxed);
}

/* The last instant is judged here, the earlier ones were by the worker. When all CPUs are busy the worker runs on the
 * thread's own: the thread could not burn anything until the worker went to sleep again. */
static int64_t burned(const sn_due *due, int64_t now, int64_t cpu) {
  int64_t rested_at = atomic_load_explicit(&sn_the_engine.worker_rested_at, memory_order_acquire);
  int64_t since = rested_at > due->cpu_read_at && rested_at < now ? rested_at : due->cpu_read_at;
  return sn_due_burned(due->gap, cpu - due->cpu, now - since);
}

/* The same where the kernel was asked how long the thread has waited for CPUs. One that the worker displaced looks like
 * one that others had displaced long before and that has got a CPU now, because the worker went to sleep. On a busy
 * machine that happens often, and always to the same code: to system calls that end a time slice. What it has waited in
 * all tells, less what it has waited since. More than nothing: it was waiting at the instant. Nothing: it was on a CPU,
 * however often it was displaced afterwards. Less: it slept. */
static int64_t burned_beside_others(const sn_due *due, int64_t waited, int64_t now, int64_t cpu) {
  enum { NOTHING_NS = 100000 }; /* the worker needs some time between waking up and reading the thread's clock */
  int64_t since = (now - due->cpu_read_at) - (cpu - due->cpu);
  int64_t before = waited - due->waited - (since > 0 ? since : 0);
  if (before > NOTHING_NS) return 0;
  return before > -NOTHING_NS ? due->gap : burned(due, now, cpu);
}

static void book_plain(sn_raw_store *store, sn_thread *t, const sn_due *due, bool last_in_gc, int64_t burned_now) {
  sn_thread_state state = due->native ? SN_STATE_NATIVE : SN_STATE_RUNNING;
  int64_t weight[2] = {due->confirmed[0], due->confirmed[1]};
  int64_t count[2] = {due->confirmed_count[0], due->confirmed_count[1]};
  if (burned_now > 0 && !due->look) {
    weight[last_in_gc] += burned_now;
    count[last_in_gc]++;
  }
  uint32_t stack = sn_stack_intern(store, false);
  bool gc = weight[1] > 0 || last_in_gc;
  uint32_t gc_stack = gc ? sn_stack_intern(store, true) : stack;
  uint32_t gc_detail = gc ? sn_gc_detail(store) : 0;
  book_cpu(store, t, stack, state, weight[0], count[0]);
  book_gc(store, t, gc_stack, state, gc_detail, weight[1], count[1]);
  if (due->look) {
    remember_stack(t, stack, true); /* it has the GVL: preempted or not, this is what it works at */
    return;
  }
  if (due->instant > t->wall_booked) {
    int64_t wall = due->instant - t->wall_booked - t->gvl_wait_in_gap;
    uint32_t stack_then = last_in_gc ? gc_stack : stack;
    book_wall_of(store, t, stack_then, state, last_in_gc ? gc_detail : 0, wall, ticks_since(t));
    t->wall_booked = due->instant;
    t->gvl_wait_in_gap = 0;
  }
  remember_stack(t, last_in_gc ? gc_stack : stack, weight[0] + weight[1] > 0);
}

/* How many collections have begun; up to 3.2 without their steps, which free no method that is still in use. */
static uint64_t collections(void) {
  if (!sn_vm_events_has_gc_hooks()) return sn_vm_events_gc_count();
  return atomic_load_explicit(&sn_the_engine.collections, memory_order_relaxed);
}

static void correct_by_peek(const sn_thread *t, const sn_due *due) {
  sn_engine_counters *c = &sn_the_engine.counters;
  bool may_add = due->collections == collections();
  sn_count(&c->peeked, 1);
  switch (sn_vm_peek_apply(&due->top, t->vm_address, may_add, sn_the_engine.stack)) {
    case SN_PEEK_CUT:
      sn_count(&c->peek_cut, 1);
      break;
    case SN_PEEK_ADDED:
      sn_count(&c->peek_added, 1);
      break;
    case SN_PEEK_GONE:
      sn_count(&c->peek_gone, 1);
      break;
    case SN_PEEK_SAME:
      break;
  }
}

void sn_sample_note_top(sn_thread *t) {
  sn_vm_top top;
  if (!sn_vm_peek_usable() || !sn_vm_peek_own(t->vm_address, &top) || !sn_due_try_lock(&t->due, 1)) return;
  if (t->due.pending && !t->due.native) {
    t->due.top = top;
    t->due.collections = collections();
    t->due.has_top = true;
  }
  sn_due_unlock(&t->due);
}

void sn_sample_serve(sn_thread *t, sn_serve_as as) {
  sn_due due;
  if (!take_due(t, &due)) return;
  int64_t waited = 0; /* before the clocks: a wait in between must not look like one before the instant */
  bool asked = due.has_waited && !due.native && sn_os_thread_waited(sn_os_thread_id(), &waited);
  int64_t now = sn_clock_monotonic();
  int64_t cpu = sn_clock_thread_cpu();
  int64_t burned_now = asked ? burned_beside_others(&due, waited, now, cpu) : burned(&due, now, cpu);
  if (burned_now == 0) sn_count(&sn_the_engine.counters.preempted, 1);
  if (burned_now < due.gap - due.gap / 8) note_crowd();
  bool in_gc = as == SN_SERVE_GC || (as == SN_SERVE_AS_SEEN && due.in_gc);
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (store) {
    sn_stack_walk_current();
    if (due.has_top) correct_by_peek(t, &due);
    book_plain(store, t, &due, in_gc, burned_now);
    sn_recorder_leave(&sn_the_engine.recorder, store);
    sn_count(&sn_the_engine.counters.samples, 1);
  }
  count_time(now);
}

/* -- threads beginning --------------------------------------------------------------------------------------------- */

static void begin(sn_thread *t, bool newborn) {
  int64_t cpu = sn_clock_thread_cpu();
  t->wall_booked = sn_clock_monotonic();
  t->tick_booked = atomic_load_explicit(&sn_the_engine.tick, memory_order_relaxed);
  t->cpu_flushed = newborn && !SN_VM_REUSES_NATIVE_THREADS && cpu < NEWBORN_CPU_NS ? 0 : cpu;
  atomic_store_explicit(&t->tid, sn_os_thread_id(), memory_order_release);
}

/* A thread that lets the GVL go this often before it is seen is no short-lived one. */
static void want_look(sn_thread *t) {
  enum { UNSEEN_RUNS = 8 };
  if (++t->unseen_runs > UNSEEN_RUNS) {
    t->seen = true;
  } else {
    sn_worker_unseen_runs();
  }
}

/* A thread that was there when the engine started, and whose native thread the VM could not tell. */
static void complete(sn_thread *t) {
  if (SN_LIKELY(atomic_load_explicit(&t->tid, memory_order_relaxed) != 0)) return;
  t->cpu_flushed = sn_clock_thread_cpu();
  atomic_store_explicit(&t->tid, sn_os_thread_id(), memory_order_release);
}

/* The calling thread's entry, made when it has none; NULL for threads of other Ractors. */
static sn_thread *own_entry(VALUE thread) {
  sn_thread *t = sn_thread_of(thread);
  if (SN_LIKELY(t != NULL)) {
    complete(t);
    return t;
  }
  if (!sn_vm_thread_in_main_ractor()) return NULL;
  t = sn_thread_register(thread);
  if (t) begin(t, true);
  return t;
}

void sn_sample_seed(VALUE thread, pid_t tid, bool current) {
  sn_thread *t = sn_thread_of(thread) ? NULL : sn_thread_register(thread);
  if (!t) return;
  t->seen = true;
  t->wall_booked = sn_clock_monotonic();
  t->tick_booked = atomic_load_explicit(&sn_the_engine.tick, memory_order_relaxed);
  atomic_store_explicit(&t->tid, tid, memory_order_release);
  if (!sn_clock_cpu_of(tid, &t->cpu_flushed)) t->cpu_flushed = 0;
  atomic_store_explicit(&t->phase, current ? SN_PHASE_RUNNING : SN_PHASE_SUSPENDED, memory_order_release);
  if (current) {
    if (sn_the_engine.born_at) {
      t->wall_booked = sn_the_engine.born_at;
      t->cpu_flushed = 0;
    }
    t->ran = true;
    atomic_store_explicit(&sn_the_engine.running, t, memory_order_release);
  } else {
    sn_worker_watch(t); /* it may be burning CPU in C code right now */
  }
}

/* A native thread serves one Ruby thread after the other: whoever had it before has ended by now. */
static void end_predecessor(const sn_thread *t) {
  uint32_t count = atomic_load(&sn_threads.count);
  pid_t tid = atomic_load(&t->tid);
  for (uint32_t i = 0; i < count; i++) {
    sn_thread *other = atomic_load(&sn_threads.entries[i]);
    if (other == t || atomic_load(&other->tid) != tid || atomic_load(&other->phase) == SN_PHASE_DEAD) continue;
    other->cpu_at_end = t->cpu_flushed;
    other->ended_at = t->wall_booked;
    atomic_store_explicit(&other->phase, SN_PHASE_DEAD, memory_order_release);
  }
}

void sn_sample_begun(VALUE thread) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed)) return;
  sn_thread *t = own_entry(thread);
  if (!t) return;
  end_predecessor(t);
  t->ran = true;
  want_look(t);
}

/* -- back on the GVL ----------------------------------------------------------------------------------------------- */

/* Weight of instants at which the thread, off the GVL, proved to burn CPU; judged up to the moment it wanted the
 * GVL. */
static int64_t native_weight(sn_thread *t, int64_t until, int64_t cpu, int64_t *count) {
  sn_due due;
  if (!take_due(t, &due) || due.look) return 0;
  int64_t weight = due.confirmed[0] + due.confirmed[1];
  *count = due.confirmed_count[0] + due.confirmed_count[1];
  int64_t last = due.cpu_read_at < until ? burned(&due, until, cpu - WAKING_CPU_NS) : 0;
  if (last * 4 >= due.gap) *count += 1;
  return weight + last;
}

static int64_t at_least(int64_t value, int64_t floor) {
  return value > floor ? value : floor;
}

typedef struct off_gvl {
  int64_t blocked; /* wall time to book, the waits for the GVL taken off */
  bool waiting;    /* whether the waits are booked too */
  int64_t weight;  /* CPU weight of native code */
  int64_t weight_count;
  int64_t ticks;
} off_gvl;

/* Without GVL events nobody knows whether a thread that does not run is blocked or waits for the GVL. */
static sn_thread_state idle_state(void) {
  return sn_vm_events_has_gvl_events() ? SN_STATE_BLOCKED : SN_STATE_NONE;
}

/* The stack that was read last is the one the thread was off the GVL with. */
static void book_off_gvl(sn_raw_store *store, sn_thread *t, const off_gvl *off) {
  uint32_t stack = sn_stack_intern(store, false);
  int64_t native = off->weight < off->blocked ? off->weight : at_least(off->blocked, 0);
  int64_t blocked_ticks = off->blocked > 0 ? off->ticks : 0;
  book_cpu(store, t, stack, SN_STATE_NATIVE, off->weight, off->weight_count);
  book_wall(store, t, stack, SN_STATE_NATIVE, native, native > 0 ? off->weight_count : 0);
  book_wall(store, t, stack, idle_state(), off->blocked - native, at_least(blocked_ticks - off->weight_count, 0));
  if (off->waiting) book_gvl_wait(store, t, stack, off->ticks - blocked_ticks);
  remember_stack(t, stack, off->weight > 0);
}

void sn_sample_book_capture(sn_raw_store *store, sn_thread *t, int64_t until, int64_t instants, int64_t weight,
                            int64_t weight_count) {
  off_gvl off = {.blocked = at_least(until - t->wall_booked, 0),
                 .weight = weight,
                 .weight_count = weight_count,
                 .ticks = instants};
  book_off_gvl(store, t, &off);
  t->wall_booked = at_least(until, t->wall_booked);
  t->tick_booked = atomic_load_explicit(&sn_the_engine.tick, memory_order_relaxed);
}

/* What a thread did since its last booked instant, when it gets the GVL back. */
typedef struct absence {
  int64_t tick_time;  /* the last instant, */
  int64_t ready_tick; /* and the last one before it wanted the GVL */
  int64_t ready_at;   /* since when it wanted it */
  int64_t now;
} absence;

/* Instants before it wanted the GVL book the time up to the last of them as blocked. An instant in the wait books all
 * waits. What lies between (running, or blocked too shortly for an instant) stays open, for the next instant that finds
 * it running. */
static off_gvl divide_absence(sn_thread *t, const absence *a) {
  int64_t earlier_waits = at_least(t->gvl_wait_in_gap - (a->now - a->ready_at), 0);
  off_gvl off = {.waiting = a->tick_time > a->ready_tick, .ticks = ticks_since(t)};
  if (a->ready_tick > t->wall_booked) {
    off.blocked = at_least(a->ready_tick - t->wall_booked - earlier_waits, 0);
    t->wall_booked = a->ready_tick;
    t->gvl_wait_in_gap = a->now - a->ready_at;
    earlier_waits = 0;
  }
  if (off.waiting) {
    int64_t open = at_least(a->ready_at - t->wall_booked - earlier_waits, 0);
    t->wall_booked = a->now - open;
    t->gvl_wait_in_gap = 0;
  }
  return off;
}

static void book_absence(sn_thread *t, const absence *a) {
  off_gvl off = divide_absence(t, a);
  if (t->due.pending) off.weight = native_weight(t, a->ready_at, sn_clock_thread_cpu(), &off.weight_count);
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  sn_stack_walk_current();
  book_off_gvl(store, t, &off);
  sn_recorder_leave(&sn_the_engine.recorder, store);
  sn_count(&sn_the_engine.counters.samples, 1);
}

static void back_on_gvl(sn_thread *t) {
  absence a = {0};
  a.tick_time = atomic_load_explicit(&sn_the_engine.tick_time, memory_order_acquire);
  a.ready_at = atomic_load_explicit(&t->ready_at, memory_order_relaxed);
  a.ready_tick = a.ready_at ? atomic_load_explicit(&t->ready_tick, memory_order_relaxed) : a.tick_time;
  bool instant_fell = a.tick_time > t->wall_booked || t->due.pending;
  if (!a.ready_at && !instant_fell) return;
  a.now = sn_clock_monotonic();
  if (!a.ready_at || a.ready_at > a.now) a.ready_at = a.now;
  t->gvl_pending += a.now - a.ready_at;
  t->gvl_wait_in_gap += a.now - a.ready_at;
  atomic_store_explicit(&t->ready_at, 0, memory_order_relaxed);
  if (!instant_fell) return;
  book_absence(t, &a);
  count_time(a.now);
}

void sn_sample_resumed(VALUE thread) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed)) return;
  sn_thread *t = own_entry(thread);
  if (!t) return;
  uint32_t phase = atomic_exchange_explicit(&t->phase, SN_PHASE_RUNNING, memory_order_acq_rel);
  if (phase != SN_PHASE_NEW && phase != SN_PHASE_RUNNING) back_on_gvl(t);
  t->ran = true;
  atomic_store_explicit(&sn_the_engine.running, t, memory_order_release);
  if (SN_UNLIKELY(!t->seen)) want_look(t);
  if (SN_UNLIKELY(sn_alloc_wants_job())) sn_vm_events_trigger_job();
}

void sn_sample_suspended(VALUE thread) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed)) return;
  sn_thread *t = own_entry(thread);
  if (!t) return;
  t->ran = true;
  if (t->due.pending) sn_sample_serve(t, SN_SERVE_PLAIN);
  if (SN_UNLIKELY(!t->seen)) sn_worker_unseen_stops();
  atomic_fetch_add_explicit(&t->suspensions, 1, memory_order_relaxed);
  atomic_store_explicit(&t->phase, SN_PHASE_SUSPENDED, memory_order_release);
  sn_thread *self = t;
  atomic_compare_exchange_strong_explicit(&sn_the_engine.running, &self, NULL, memory_order_acq_rel,
                                          memory_order_relaxed);
  sn_worker_watch(t);
}

void sn_sample_ready(VALUE thread) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed)) return;
  sn_thread *t = sn_thread_of(thread);
  if (!t) return;
  int64_t tick_time = atomic_load_explicit(&sn_the_engine.tick_time, memory_order_acquire);
  atomic_store_explicit(&t->ready_tick, tick_time, memory_order_relaxed);
  atomic_store_explicit(&t->ready_at, sn_clock_monotonic(), memory_order_release);
  uint32_t suspended = SN_PHASE_SUSPENDED;
  atomic_compare_exchange_strong_explicit(&t->phase, &suspended, SN_PHASE_READY, memory_order_acq_rel,
                                          memory_order_relaxed);
}

void sn_sample_exited(VALUE thread) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed)) return;
  sn_thread *t = sn_thread_of(thread);
  if (!t) return;
  if (!t->seen) sn_worker_unseen_stops();
  t->cpu_at_end = sn_clock_thread_cpu();
  t->ended_at = sn_clock_monotonic();
  atomic_store_explicit(&t->phase, SN_PHASE_DEAD, memory_order_release);
}

void sn_sample_job(void) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed) || !sn_vm_thread_in_main_ractor()) return;
  sn_count(&sn_the_engine.counters.jobs, 1);
  sn_watch_drain();
  sn_thread *t = own_entry(rb_thread_current());
  if (!t) return;
  sn_watch_take(t);
  if (sn_vm_events_has_gvl_events() && atomic_load_explicit(&t->phase, memory_order_relaxed) != SN_PHASE_RUNNING) {
    /* It announced that it would sleep, but found an interrupt first: no event says that it goes on. */
    atomic_store_explicit(&t->phase, SN_PHASE_RUNNING, memory_order_release);
    atomic_store_explicit(&sn_the_engine.running, t, memory_order_release);
  }
  t->ran = true;
  if (t->due.pending) sn_sample_serve(t, SN_SERVE_AS_SEEN);
  if (!sn_vm_events_has_gvl_events() && sn_vm_layout_usable()) {
    sn_watch_instant(SN_VM_WITH_GVL, atomic_load_explicit(&sn_the_engine.tick_time, memory_order_acquire), t,
                     sn_worker_moved);
  }
}

/* -- settling at a flush ------------------------------------------------------------------------------------------- */

static int64_t cpu_since_flush(sn_thread *t, bool dead) {
  int64_t cpu;
  if (dead) {
    cpu = t->cpu_at_end;
  } else if (sn_vm_events_has_gvl_events() && !t->ran &&
             !atomic_exchange_explicit(&t->burned_natively, false, memory_order_relaxed) && !t->due.pending) {
    return 0; /* has not been on a CPU */
  } else if (!sn_clock_cpu_of(atomic_load_explicit(&t->tid, memory_order_acquire), &cpu)) {
    bool ended_just_now = atomic_load_explicit(&t->phase, memory_order_acquire) == SN_PHASE_DEAD;
    if (!ended_just_now) return -1;
    cpu = t->cpu_at_end;
  }
  int64_t used = at_least(cpu - t->cpu_flushed, 0);
  t->cpu_flushed = at_least(cpu, t->cpu_flushed);
  return used;
}

/* Non-waiting wall time up to `now` that is in no slot yet. */
static int64_t take_wall(sn_thread *t, int64_t now) {
  int64_t wall = at_least(now - t->wall_booked - t->gvl_wait_in_gap, 0);
  t->wall_booked = at_least(now, t->wall_booked);
  t->gvl_wait_in_gap = 0;
  return wall;
}

static void settle_dead(sn_raw_store *store, sn_thread *t) {
  bool known = t->last_generation == sn_the_engine.generation;
  uint32_t stack = known ? t->last_stack : sn_stack_intern_special(store, SN_FRAME_NOT_SAMPLED);
  sn_labels_pin(known ? t->last_labels : 0);
  book_wall(store, t, stack, SN_STATE_NONE, take_wall(t, t->ended_at), known ? 0 : 1);
  book_gvl_wait(store, t, stack, 0);
  sn_labels_pin(SN_LABELS_READ);
}

static void settle_own(sn_raw_store *store, sn_thread *t, int64_t now) {
  sn_stack_walk_current();
  sn_stack_drop_own(own_directory, own_directory_length);
  uint32_t stack = sn_stack_intern(store, false);
  book_wall(store, t, stack, SN_STATE_RUNNING, take_wall(t, now), ticks_since(t));
  book_gvl_wait(store, t, stack, 0);
  remember_stack(t, stack, t->burn_generation != sn_the_engine.generation);
}

static void settle_off_gvl(sn_raw_store *store, sn_thread *t, int64_t now) {
  int64_t ready_at = atomic_load_explicit(&t->ready_at, memory_order_acquire);
  int64_t wait = ready_at ? at_least(now - ready_at, 0) : 0;
  if (ready_at) atomic_store_explicit(&t->ready_at, now, memory_order_relaxed);
  t->gvl_pending += wait;
  t->gvl_wait_in_gap += wait;
  off_gvl off = {.blocked = take_wall(t, now), .waiting = true, .ticks = ticks_since(t)};
  int64_t cpu;
  if (t->due.pending && sn_clock_cpu_of(atomic_load(&t->tid), &cpu)) {
    off.weight = native_weight(t, now - wait, cpu, &off.weight_count);
  }
  sn_stack_walk(t->thread);
  book_off_gvl(store, t, &off);
}

/* Up to 3.1 nothing tells of a thread that ended by an exception. Its native thread may wait for the next one: until
 * that begins (end_predecessor), its clock is still the dead thread's. */
void sn_sample_notice_death(sn_thread *t, int64_t now) {
  if (atomic_load_explicit(&t->phase, memory_order_relaxed) == SN_PHASE_DEAD || sn_vm_thread_alive(t->thread)) return;
  if (!sn_clock_cpu_of(atomic_load(&t->tid), &t->cpu_at_end)) t->cpu_at_end = t->cpu_flushed;
  t->ended_at = now;
  atomic_store_explicit(&t->phase, SN_PHASE_DEAD, memory_order_release);
}

int64_t sn_sample_settle(sn_thread *t, int64_t now, bool own, uint32_t *fallback, uint32_t *labels) {
  sn_watch_take(t);
  bool dead = atomic_load_explicit(&t->phase, memory_order_acquire) == SN_PHASE_DEAD;
  if (own && t->due.pending) sn_sample_serve(t, SN_SERVE_AS_SEEN);
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return -1;
  if (dead) {
    settle_dead(store, t);
  } else if (own) {
    settle_own(store, t, now);
  } else {
    settle_off_gvl(store, t, now);
  }
  int64_t cpu = cpu_since_flush(t, dead);
  t->ran = own;
  bool burned = t->burn_generation == sn_the_engine.generation;
  *fallback = burned ? t->burn_stack : sn_stack_intern_special(store, SN_FRAME_NOT_SAMPLED);
  *labels = burned ? t->burn_labels : 0;
  sn_recorder_leave(&sn_the_engine.recorder, store);
  return cpu;
}
