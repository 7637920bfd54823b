/* collect_worker: see the header. `work` runs on the worker thread; the rest is called by application threads. */
#include "collect_worker.h"

#include <stdlib.h>

#include "../os/os_clock.h"
#include "../os/os_signal.h"
#include "../vm/vm_events.h"
#include "../vm/vm_layout.h"
#include "../vm/vm_peek.h"
#include "collect_alloc.h"
#include "collect_budget.h"
#include "collect_sample.h"
#include "collect_watch.h"

enum {
  HOT_LIMIT = 32, /* threads that may be watched for native CPU at one time */
  NAP_NS = 100000,
  PROBE_LIMIT = 3,        /* of the recently suspended ones looked at in one instant */
  WAITING_LIMIT = 256,    /* of them remembered */
  LATE_NS = 1000000,      /* an instant observed later than this counts as late */
  LOOK_MIN_NS = 300000,   /* a first look falls this long after the one before, */
  LOOK_SPAN_NS = 4200000, /* plus up to this */
  ACTS_EVERY = 256,       /* of acts that take no instant: until the worker's own clock is read */
};

/* Worker only. */
static struct {
  uint64_t random;
  bool takes_instants;
  uint32_t acts;
  int64_t last_instant;
  int64_t next_instant;
  int64_t next_look;
  sn_thread *hot[HOT_LIMIT];
  uint32_t hot_count;
  sn_thread *waiting[WAITING_LIMIT]; /* listed, not looked at yet */
  uint32_t waiting_count;
  uint32_t cold_cursor;
} me;

static uint64_t random_word(void) {
  uint64_t x = me.random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  me.random = x;
  return x * 0x2545F4914F6CDD1Du;
}

static int64_t random_below(int64_t n) {
  return (int64_t)((random_word() >> 11) % (uint64_t)n);
}

/* -- noting instants on threads ------------------------------------------------------------------------------------ */

typedef struct observation {
  int64_t instant, gap;
  int64_t cpu, cpu_read_at;
  bool has_waited;
  int64_t waited;
  bool native, in_gc, look;
  bool has_top;
  sn_vm_top top;
  uint64_t collections;
  bool moved; /* native: it ran in between; only what it burned right after the earlier instant is sure to be of that */
} observation;

static bool must_watch(void) {
  return !sn_vm_events_has_gvl_events() && sn_vm_layout_usable();
}

/* An earlier instant that is still there counts as far as the thread has burned CPU since. */
static void confirm(sn_due *due, const observation *seen) {
  if (!due->pending || due->look) return;
  int64_t burned = sn_due_burned(due->gap, seen->cpu - due->cpu, seen->cpu_read_at - due->cpu_read_at);
  if (due->native && seen->moved) burned = due->burned_at_once * due->gap;
  due->confirmed[due->in_gc] += burned;
  due->confirmed_count[due->in_gc] += burned * 4 >= due->gap; /* of less it cannot be said that it was seen burning */
}

/* Whether it is worth looking again at the next instant. */
static bool burns(const sn_due *since, const observation *seen) {
  return (seen->cpu - since->cpu) * 20 >= seen->cpu_read_at - since->cpu_read_at;
}

static bool note(sn_thread *t, const observation *seen) {
  sn_due *due = &t->due;
  if (!sn_due_try_lock(due, 1)) {
    sn_count(&sn_the_engine.counters.contended, 1);
    return false;
  }
  bool busy = due->cpu_read_at && (seen->cpu - due->cpu) * 5 >= seen->cpu_read_at - due->cpu_read_at;
  if (!seen->look) confirm(due, seen);
  if (!(seen->look && due->pending)) { /* a look never replaces a true instant */
    due->instant = seen->instant;
    due->cpu = seen->cpu;
    due->cpu_read_at = seen->cpu_read_at;
    due->gap = seen->gap;
    due->has_waited = seen->has_waited;
    due->waited = seen->waited;
    due->native = seen->native;
    due->in_gc = seen->in_gc;
    due->look = seen->look;
    due->has_top = seen->has_top;
    if (seen->has_top) due->top = seen->top;
    due->collections = seen->collections;
    due->burned_at_once = 0;
    due->busy_lately = busy;
    due->pending = true;
  }
  sn_due_unlock(due);
  return true;
}

static uint32_t phase_of(const sn_thread *t) {
  return atomic_load_explicit(&t->phase, memory_order_acquire);
}

static bool read_cpu(const sn_thread *t, observation *seen) {
  bool told = sn_clock_cpu_of(atomic_load_explicit(&t->tid, memory_order_acquire), &seen->cpu);
  seen->cpu_read_at = sn_clock_monotonic();
  return told;
}

static bool in_gc(void) {
  if (sn_vm_events_has_gc_hooks()) return atomic_load_explicit(&sn_the_engine.in_gc, memory_order_acquire);
  return sn_vm_events_during_gc();
}

/* -- who has the GVL ----------------------------------------------------------------------------------------------- */

/* Where no events tell, by comparing the VM's own word with the threads known. */
static sn_thread *holder_by_owner(void) {
  static sn_thread *last;
  uintptr_t owner = sn_vm_layout_gvl_owner();
  if (!owner) return NULL;
  if (last && last->vm_address == owner && last->epoch == sn_threads.epoch) return last;
  uint32_t count = atomic_load_explicit(&sn_threads.count, memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    sn_thread *t = atomic_load_explicit(&sn_threads.entries[i], memory_order_acquire);
    if (t && t->vm_address == owner && phase_of(t) != SN_PHASE_DEAD) return last = t;
  }
  return NULL;
}

sn_thread *sn_worker_holder(void) {
  if (!sn_vm_events_has_gvl_events()) return holder_by_owner();
  return atomic_load_explicit(&sn_the_engine.running, memory_order_acquire);
}

/* What the signal handler compares with; written before the signal is sent. */
static struct {
  _Atomic pid_t tid;
  _Atomic(sn_thread *) thread;
} asked;

static void on_signal(void) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_acquire)) return;
  if (atomic_load_explicit(&asked.tid, memory_order_acquire) != sn_os_thread_id()) return;
  sn_thread *t = atomic_load_explicit(&asked.thread, memory_order_acquire);
  if (sn_vm_layout_gvl_owner() != t->vm_address) return;
  if (sn_vm_layout_has_other_ractors()) {
    sn_count(&sn_the_engine.counters.beside_ractors, 1);
    return;
  }
  sn_sample_note_top(t);
  sn_vm_events_job_from_handler(t->vm_address);
}

void sn_worker_ask(sn_thread *t) {
  if (!sn_vm_events_needs_signal()) {
    sn_vm_events_trigger_job();
    return;
  }
  if (!t) return;
  pid_t tid = atomic_load_explicit(&t->tid, memory_order_acquire);
  atomic_store_explicit(&asked.thread, t, memory_order_release);
  atomic_store_explicit(&asked.tid, tid, memory_order_release);
  sn_os_signal_send(tid);
}

/* Where a signal is sent, its handler does this on the thread. */
static void peek(sn_thread *t, observation *seen) {
  if (sn_vm_events_needs_signal() || !sn_vm_peek_usable()) return;
  seen->collections = atomic_load_explicit(&sn_the_engine.collections, memory_order_relaxed);
  seen->has_top = sn_vm_peek_from_outside(t->vm_address, &t->peeked_ec, &seen->top);
}

/* Asked for only where it matters: it costs more than all the rest. */
static void read_waited(sn_thread *t, observation *seen) {
  uint64_t tick = atomic_load_explicit(&sn_the_engine.tick, memory_order_relaxed);
  if (tick >= atomic_load_explicit(&sn_the_engine.crowded_until, memory_order_relaxed)) return;
  seen->has_waited = sn_os_thread_waited(atomic_load_explicit(&t->tid, memory_order_acquire), &seen->waited);
}

static bool observe_holder(sn_thread *t, int64_t instant, int64_t gap) {
  observation seen = {.instant = instant, .gap = gap};
  if (!t) return false;
  peek(t, &seen);
  seen.in_gc = in_gc();
  read_waited(t, &seen);
  return read_cpu(t, &seen) && note(t, &seen);
}

/* -- who burns CPU without it -------------------------------------------------------------------------------------- */

static bool still_off(const sn_thread *t) {
  return atomic_load_explicit(&t->suspensions, memory_order_relaxed) == t->hot_suspensions;
}

static bool watch_again(sn_thread *t, const observation *seen) {
  t->hot_suspensions = atomic_load_explicit(&t->suspensions, memory_order_relaxed);
  return note(t, seen);
}

/* A watched thread stays watched while its clock advances with the time, and anew when it gave the GVL up again since.
 * Returns whether it does. */
static bool observe_hot(sn_thread *t, int64_t gap, bool stands) {
  observation seen = {.instant = sn_clock_monotonic(), .gap = gap, .native = true, .moved = !stands};
  if (phase_of(t) != SN_PHASE_SUSPENDED || !read_cpu(t, &seen)) return false;
  if (!still_off(t)) return watch_again(t, &seen);
  bool burning = burns(&t->due, &seen);
  if (!t->due.pending) burning = true; /* its first instant was taken by a flush: judge at the next */
  if (!burning) return false;
  atomic_store_explicit(&t->burned_natively, true, memory_order_relaxed);
  note(t, &seen);
  return true;
}

/* -- the same where nothing tells when a thread came back ---------------------------------------------------------- */

static void rest(void) {
  atomic_store_explicit(&sn_the_engine.worker_rested_at, sn_clock_monotonic(), memory_order_release);
}

static bool burns_since(const sn_thread *t, observation *since) {
  observation seen = {.cpu = 0};
  if (!t->due.pending || !read_cpu(t, &seen)) return false;
  bool burning = (seen.cpu - since->cpu) * 2 >= seen.cpu_read_at - since->cpu_read_at;
  *since = seen;
  return burning;
}

/* A thread that waits for the GVL also used CPU lately, but never right after an instant at which it has none. So of
 * those that have not been seen to burn for long only one in four instants is looked at, and counts for four. */
enum { PROVEN_FOR = 32, ONE_IN = 4 };

static void count_at_once(sn_thread *t) {
  if (!sn_due_try_lock(&t->due, 1)) return;
  t->due.burned_at_once = t->native_proofs > 0 ? 1 : ONE_IN;
  sn_due_unlock(&t->due);
  t->native_proofs = PROVEN_FOR;
}

/* Which of the threads burn, without having moved. */
static void recheck(sn_thread **threads, observation *since, uint32_t count, bool *burning) {
  bool stands[HOT_LIMIT], any = false;
  for (uint32_t i = 0; i < count; i++) any |= burning[i] = burns_since(threads[i], &since[i]);
  if (!any) return;
  sn_watch_stand(threads, count, stands);
  for (uint32_t i = 0; i < count; i++) {
    if (burning[i] && stands[i]) count_at_once(threads[i]);
  }
}

static uint32_t choose_to_check(sn_thread **chosen, observation *since) {
  bool all = random_below(ONE_IN) == 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < me.hot_count; i++) {
    sn_thread *t = me.hot[i];
    if (t->native_proofs == 0 && !all) continue;
    since[count] = (observation){.cpu = t->due.cpu, .cpu_read_at = t->due.cpu_read_at};
    chosen[count++] = t;
  }
  return count;
}

/* There, only what a thread burns right after an instant is sure to belong to the stack it had at it. One that used
 * much CPU lately but none just now may be waiting for the very CPU that the worker is on: a short nap tells. */
static void recheck_all_hot(void) {
  observation since[HOT_LIMIT];
  bool burning[HOT_LIMIT] = {false};
  sn_thread *chosen[HOT_LIMIT];
  uint32_t count = choose_to_check(chosen, since), unsure = 0;
  if (count == 0) return;
  recheck(chosen, since, count, burning);
  for (uint32_t i = 0; i < count; i++) {
    if (!burning[i] && chosen[i]->native_proofs > 0) chosen[i]->native_proofs--;
    if (burning[i] || !chosen[i]->due.busy_lately) continue;
    since[unsure] = since[i];
    chosen[unsure++] = chosen[i];
  }
  if (unsure == 0) return;
  rest();
  sn_os_waiter *waiter = &sn_the_engine.waiter;
  sn_os_waiter_sleep(waiter, sn_os_waiter_seen(waiter), sn_clock_monotonic() + NAP_NS);
  recheck(chosen, since, unsure, burning);
}

static void let_go(sn_thread *t) {
  atomic_store_explicit(&t->listed, false, memory_order_release);
}

static void observe_all_hot(int64_t gap) {
  bool stands[HOT_LIMIT];
  for (uint32_t i = 0; i < me.hot_count; i++) stands[i] = true; /* events would have told */
  if (must_watch()) sn_watch_stand(me.hot, me.hot_count, stands);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < me.hot_count; i++) {
    sn_thread *t = me.hot[i];
    if (observe_hot(t, gap, stands[i])) {
      me.hot[kept++] = t;
    } else {
      let_go(t);
    }
  }
  me.hot_count = kept;
}

/* Notes a first instant on a suspended thread; the next one tells whether it burns. */
static bool begin_watching(sn_thread *t, int64_t gap) {
  observation seen = {.instant = sn_clock_monotonic(), .gap = gap, .native = true};
  if (me.hot_count == HOT_LIMIT || phase_of(t) != SN_PHASE_SUSPENDED || !read_cpu(t, &seen)) return false;
  if (!watch_again(t, &seen)) return false;
  me.hot[me.hot_count++] = t;
  return true;
}

/* Takes over who gave the GVL up lately, and lets those go who have it again. */
static void update_waiting(void) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < me.waiting_count; i++) {
    sn_thread *t = me.waiting[i];
    phase_of(t) == SN_PHASE_SUSPENDED ? (void)(me.waiting[kept++] = t) : let_go(t);
  }
  me.waiting_count = kept;
  sn_thread *t = atomic_exchange_explicit(&sn_the_engine.suspended_list, NULL, memory_order_acq_rel);
  while (t) {
    sn_thread *next = t->next_listed;
    if (me.waiting_count < WAITING_LIMIT) {
      me.waiting[me.waiting_count++] = t;
    } else {
      sn_count(&sn_the_engine.counters.probes_skipped, 1);
      let_go(t);
    }
    t = next;
  }
}

/* A few of them, drawn by lot, are looked at now and stand for all; the others wait for the next instant. */
static void observe_suspended(int64_t gap) {
  update_waiting();
  uint32_t all = me.waiting_count, probes = all < PROBE_LIMIT ? all : PROBE_LIMIT;
  for (uint32_t n = 0; n < probes; n++) {
    uint32_t drawn = (uint32_t)random_below(me.waiting_count);
    sn_thread *t = me.waiting[drawn];
    me.waiting[drawn] = me.waiting[--me.waiting_count];
    if (!begin_watching(t, gap * all / probes)) let_go(t);
  }
}

/* One of those that looked cold, in turn: C code may start to compute after it waited for long. */
static void observe_one_cold(int64_t gap) {
  uint32_t count = atomic_load_explicit(&sn_threads.count, memory_order_acquire);
  if (count == 0) return;
  sn_thread *t = atomic_load_explicit(&sn_threads.entries[me.cold_cursor++ % count], memory_order_acquire);
  if (!t || phase_of(t) != SN_PHASE_SUSPENDED) return;
  if (atomic_exchange_explicit(&t->listed, true, memory_order_acq_rel)) return;
  if (!begin_watching(t, gap)) let_go(t);
}

/* -- the same without GVL events ----------------------------------------------------------------------------------- */

static void drop_stale_due(sn_thread *t) {
  if (!t->due.pending || t->due.native || !sn_due_try_lock(&t->due, 1)) return;
  t->due.pending = false; /* it lost the GVL before its job ran: wall time only, by its capture */
  sn_due_unlock(&t->due);
}

void sn_worker_moved(sn_thread *t) {
  drop_stale_due(t);
  atomic_fetch_add_explicit(&t->suspensions, 1, memory_order_relaxed);
  uint32_t phase = phase_of(t);
  if (phase == SN_PHASE_DEAD) return;
  atomic_compare_exchange_strong(&t->phase, &phase, SN_PHASE_SUSPENDED);
  sn_worker_watch(t);
}

static void note_running(sn_thread *t) {
  sn_watch_running(t);
  uint32_t phase = phase_of(t);
  if (phase != SN_PHASE_DEAD) atomic_compare_exchange_strong(&t->phase, &phase, SN_PHASE_RUNNING);
}

/* -- instants ------------------------------------------------------------------------------------------------------ */

static void take_instant(int64_t now) {
  int64_t gap = now - me.last_instant;
  me.last_instant = now;
  atomic_store_explicit(&sn_the_engine.tick_time, now, memory_order_release);
  atomic_store_explicit(&sn_the_engine.look_asked, false, memory_order_relaxed);
  sn_count(&sn_the_engine.tick, 1);
  sn_count(&sn_the_engine.counters.instants, 1);
  sn_thread *t = sn_worker_holder();
  if (t && must_watch()) note_running(t);
  bool wanted = observe_holder(t, now, gap);
  if (wanted) sn_worker_ask(t); /* before all else: what runs now should still be on the stack then */
  if (!t && must_watch()) sn_watch_instant(SN_VM_THROUGH_KERNEL, now, NULL, sn_worker_moved);
  observe_all_hot(gap);
  observe_suspended(gap);
  observe_one_cold(gap);
  if (must_watch()) recheck_all_hot();
  /* A thread that announced a sleep and then went on computing looks hot: the job finds out. */
  if (!wanted && me.hot_count > 0) sn_worker_ask(t);
}

static void take_look(int64_t now) {
  sn_thread *t = sn_worker_holder();
  observation seen = {.instant = now, .look = true};
  if (!t || t->seen || !read_cpu(t, &seen) || !note(t, &seen)) return;
  sn_count(&sn_the_engine.counters.looks, 1);
  sn_worker_ask(t);
}

static void count_lateness(int64_t late) {
  if (late <= 0) return;
  sn_count(&sn_the_engine.counters.lateness_ns, (uint64_t)late);
  if (late > LATE_NS) sn_count(&sn_the_engine.counters.late, 1);
}

/* Between half and one and a half of the mean after the instant that was due; never a row of them in the past. */
static void plan_instant(int64_t now) {
  int64_t mean = atomic_load_explicit(&sn_the_engine.interval_ns, memory_order_relaxed);
  if (mean > sn_the_engine.base_interval_ns) sn_count(&sn_the_engine.counters.stretched, 1);
  me.next_instant += mean / 2 + random_below(mean + 1);
  if (me.next_instant <= now) me.next_instant = now + mean / 2 + random_below(mean + 1);
}

static bool looks_wanted(void) {
  return me.takes_instants && atomic_load_explicit(&sn_the_engine.unseen, memory_order_relaxed);
}

static void plan_look(int64_t now) {
  me.next_look = now + LOOK_MIN_NS + random_below(LOOK_SPAN_NS);
}

/* -- the thread ---------------------------------------------------------------------------------------------------- */

/* Instants are taken only while somebody wants them; the first gap begins where that begins. */
static void follow_wishes(int64_t now) {
  bool wanted = atomic_load_explicit(&sn_the_engine.samples, memory_order_acquire);
  if (wanted == me.takes_instants) return;
  me.takes_instants = wanted;
  me.last_instant = now;
  me.next_instant = wanted ? now : INT64_MAX;
  if (wanted) plan_instant(now);
}

static int64_t next_time(void) {
  int64_t next = me.next_look < me.next_instant ? me.next_look : me.next_instant;
  int64_t window = sn_alloc_next_time();
  return window < next ? window : next;
}

static void act(int64_t now) {
  sn_alloc_act(now);
  if (!me.takes_instants && ++me.acts % ACTS_EVERY == 0) {
    atomic_store_explicit(&sn_the_engine.counters.worker_cpu_ns, (uint64_t)sn_clock_thread_cpu(), memory_order_relaxed);
  }
  if (now >= me.next_instant) {
    count_lateness(now - me.next_instant);
    take_instant(now);
    plan_instant(now);
    sn_budget_keep(now);
  }
  if (!looks_wanted()) {
    me.next_look = INT64_MAX;
  } else if (me.next_look == INT64_MAX) {
    plan_look(now);
  } else if (now >= me.next_look) {
    take_look(now);
    plan_look(now);
  }
}

static void handle_time(int64_t now) {
  act(now);
  rest();
}

static void work(void *unused) {
  (void)unused;
  sn_engine *e = &sn_the_engine;
  atomic_store_explicit(&e->worker_tid, sn_os_thread_id(), memory_order_release);
  sn_os_thread_be_prompt();
  for (;;) {
    uint32_t seen = sn_os_waiter_seen(&e->waiter);
    /* After `seen` too: whoever stops us while nothing is planned would else wait for ever. */
    if (atomic_load_explicit(&e->stop, memory_order_acquire)) break;
    int64_t now = sn_clock_monotonic();
    follow_wishes(now); /* after `seen`: who changes them wakes us afterwards */
    int64_t until = next_time();
    bool look_unplanned = looks_wanted() && me.next_look == INT64_MAX;
    if (now < until && !look_unplanned) {
      sn_os_waiter_sleep(&e->waiter, seen, until);
      now = sn_clock_monotonic();
    }
    if (!atomic_load_explicit(&e->stop, memory_order_acquire)) handle_time(now);
  }
  atomic_store_explicit(&e->counters.worker_cpu_ns, (uint64_t)sn_clock_thread_cpu(), memory_order_relaxed);
}

const char *sn_worker_start(void) {
  sn_engine *e = &sn_the_engine;
  const char *problem = sn_vm_events_needs_signal() ? sn_os_signal_install(on_signal) : NULL;
  if (problem) return problem;
  int64_t now = sn_clock_monotonic();
  me.random = (uint64_t)now * 0x9E3779B97F4A7C15u ^ (uint64_t)(uintptr_t)&now ^ (uint64_t)sn_os_thread_id();
  if (me.random == 0) me.random = 1;
  me.last_instant = me.next_instant = now;
  me.next_look = INT64_MAX;
  me.hot_count = 0;
  me.waiting_count = 0;
  sn_budget_begin(now);
  atomic_store(&e->counters.job_ns, 0);
  atomic_store(&e->tick_time, now);
  atomic_store(&e->crowded_until, 0);
  atomic_store(&e->stop, false);
  atomic_store(&e->worker_tid, 0);
  e->worker_cpu_flushed = 0;
  atomic_store(&e->unseen, false);
  atomic_store(&e->look_asked, false);
  me.takes_instants = false;
  me.next_instant = INT64_MAX;
  return sn_os_thread_start(&e->worker, "sonde", work, NULL) == 0 ? NULL : "the system refuses a thread";
}

void sn_worker_stop(void) {
  sn_engine *e = &sn_the_engine;
  if (!e->worker.started) return;
  atomic_store_explicit(&e->stop, true, memory_order_release);
  sn_os_waiter_wake(&e->waiter);
  sn_os_thread_join(&e->worker);
}

void sn_worker_forget(void) {
  sn_os_thread_forget(&sn_the_engine.worker);
}

void sn_worker_wake(void) {
  sn_os_waiter_wake(&sn_the_engine.waiter);
}

void sn_worker_watch(sn_thread *t) {
  if (atomic_exchange_explicit(&t->listed, true, memory_order_acq_rel)) return;
  sn_thread *head = atomic_load_explicit(&sn_the_engine.suspended_list, memory_order_relaxed);
  do {
    t->next_listed = head;
  } while (!atomic_compare_exchange_weak_explicit(&sn_the_engine.suspended_list, &head, t, memory_order_release,
                                                  memory_order_relaxed));
}

void sn_worker_unseen_runs(void) {
  atomic_store_explicit(&sn_the_engine.unseen, true, memory_order_relaxed);
  /* One wake-up between two instants: a program that makes threads without pause must not keep the worker awake. */
  if (!atomic_exchange_explicit(&sn_the_engine.look_asked, true, memory_order_acq_rel)) {
    sn_os_waiter_wake(&sn_the_engine.waiter);
  }
}

void sn_worker_unseen_stops(void) {
  atomic_store_explicit(&sn_the_engine.unseen, false, memory_order_relaxed);
}
