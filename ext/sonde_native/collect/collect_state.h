/* collect_state: the engine's shared state, one static instance; who may touch what.
 *
 * Everything here is static, so that a hook that fires while the VM goes down finds valid memory; `enabled` gates all.
 */
#ifndef SONDE_COLLECT_STATE_H
#define SONDE_COLLECT_STATE_H

#include <stdatomic.h>

#include "../core/base.h"
#include "../os/os_thread.h"
#include "../record/recorder.h"
#include "../vm/vm_stack.h"
#include "collect_thread.h"

/* Counted losses and costs, one by one in core/counters.def. */
typedef struct sn_engine_counters {
#define SN_COUNTER(name, meaning) _Atomic uint64_t name;
#include "../core/counters.def"
#undef SN_COUNTER
} sn_engine_counters;

typedef struct sn_engine {
  _Atomic bool enabled; /* hooks do nothing while false */
  _Atomic bool samples; /* some window wants CPU or wall time: the worker takes instants */
  _Atomic bool watches_allocations;

  /* written in GVL events and jobs, read by the worker */
  _Atomic(sn_thread *) running;        /* who holds the main Ractor's GVL */
  _Atomic(sn_thread *) suspended_list; /* threads that gave it up since the worker last looked (by next_listed) */
  _Atomic bool unseen;                 /* it runs for one of the first times, and nobody has seen its stack */
  _Atomic bool look_asked;             /* the worker was woken for that since the last instant */

  /* written by the worker, read everywhere */
  _Atomic int64_t tick_time;        /* monotonic time of the last instant */
  _Atomic uint64_t tick;            /* its number */
  _Atomic int64_t worker_rested_at; /* when the worker had done its work at the last instant */

  /* written by jobs, read by the worker */
  _Atomic uint64_t crowded_until; /* a tick: before it, others than the worker are taken to want the program's CPU */

  /* written by GC hooks (with the GVL), read by the worker */
  _Atomic bool in_gc;
  _Atomic uint64_t collections; /* how many pauses have begun */
  int64_t gc_entered;
  int64_t gc_time; /* in this slot; belongs to the GVL */

  /* of all windows; change with the GVL where one is opened or closed, read by the worker too */
  _Atomic int64_t base_interval_ns; /* mean time between instants as asked for */
  _Atomic double budget;            /* share of one CPU that Sonde may use */
  uint32_t max_frames;
  _Atomic int64_t interval_ns; /* mean time between instants now */

  /* belong to the GVL */
  uint64_t generation;  /* of the active slot; raised at each flip */
  int64_t slot_started; /* when the active slot became so; profiles begin and end at such moments */
  int64_t born_at;      /* when this process was forked, if it was just before the engine started; else 0 */
  int64_t process_cpu_at_start;
  int64_t cpu_booked;        /* CPU time of all threads in flushes since */
  int64_t gc_total_at_start; /* GC.total_time, where there are no GC hooks */
  sn_vm_stack *stack;        /* where stacks are walked to */

  sn_recorder recorder;
  sn_os_thread worker;
  _Atomic pid_t worker_tid;
  int64_t worker_cpu_flushed; /* belongs to the GVL */
  sn_os_waiter waiter;
  _Atomic bool stop;
  sn_engine_counters counters;
} sn_engine;

extern sn_engine sn_the_engine;

static inline void sn_count(_Atomic uint64_t *counter, uint64_t by) {
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static inline void sn_count_max(_Atomic uint64_t *counter, uint64_t value) {
  uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);
  while (old < value &&
         !atomic_compare_exchange_weak_explicit(counter, &old, value, memory_order_relaxed, memory_order_relaxed)) {
  }
}

#endif
