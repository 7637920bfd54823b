/* collect_thread: what is kept for each Ruby thread while a profile runs, and the registry of these entries.
 *
 * Memory of entries is never given back to the C library and an entry keeps its place, so that the worker may look at
 * an entry that has just been let go (it then finds nothing to do there). An entry belongs to a thread only while both
 * the epoch and the thread agree: see sn_thread_of.
 */
#ifndef SONDE_COLLECT_THREAD_H
#define SONDE_COLLECT_THREAD_H

#include <ruby.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "../core/base.h"
#include "../core/raw_store.h"
#include "../vm/vm_peek.h"

typedef enum sn_thread_phase {
  SN_PHASE_NEW,       /* made, has not run yet */
  SN_PHASE_RUNNING,   /* has the GVL */
  SN_PHASE_SUSPENDED, /* gave the GVL up: blocked, or in C code without it */
  SN_PHASE_READY,     /* waits for the GVL */
  SN_PHASE_DEAD       /* ended; the entry waits for the next flush */
} sn_thread_phase;

/* Instants at which the worker saw a thread on the CPU and nobody has booked yet. The worker adds, the thread (or a job
 * on it) takes. `lock` is held for a few instructions only (up to Ruby 3.2 also while
 * frames are copied); the taker tries a bounded number of times and else leaves
 * it for the next opportunity; the worker tries once. */
typedef struct sn_due {
  _Atomic uint32_t lock;
  bool pending;
  bool native;            /* seen off the GVL */
  bool busy_lately;       /* it used at least a fifth of a CPU since it was noted before */
  uint8_t burned_at_once; /* native: its clock went on while the worker was still at this instant: for how many such */
  bool in_gc;             /* the last instant fell into a collection */
  bool look;              /* the last instant was a first look at a new thread: a stack is wanted, no weight */
  int64_t instant;        /* the last instant: monotonic time, */
  int64_t cpu;            /* the thread's CPU clock a moment later, */
  int64_t cpu_read_at;  /* and when that was: reading another thread's clock can take longer than a job needs to come */
  int64_t gap;          /* the time since the instant before it */
  bool has_waited;      /* whether was asked: */
  int64_t waited;       /* for how long it had waited for CPUs just before that */
  bool has_top;         /* whether the top frame at the last instant is known: */
  sn_vm_top top;        /* it, */
  uint64_t collections; /* and how many collections had begun by then */
  int64_t confirmed[2]; /* weight of earlier instants, as far as CPU proved to be burned; [1]: inside a collection */
  int64_t confirmed_count[2];
} sn_due;

typedef struct sn_thread {
  /* fixed from registration until release */
  VALUE thread;
  uint32_t number;      /* in rows; unique for a long time */
  uint32_t epoch;       /* of the engine run that registered it */
  uint32_t position;    /* in the registry; belongs to the GVL */
  uintptr_t vm_address; /* of the VM's struct, where vm_layout compares it */

  /* written once by the thread itself or by seeding, read by the worker */
  _Atomic pid_t tid;

  /* written in GVL events */
  _Atomic uint32_t phase;
  _Atomic uint64_t suspensions; /* how often it gave the GVL up */
  _Atomic int64_t ready_at;     /* when it began to wait for the GVL; 0: it does not */
  _Atomic int64_t ready_tick;   /* the last instant before that */

  /* belong to the GVL (jobs and events on the thread, flushes) */
  bool ran;                /* since the last flush */
  bool seen;               /* a stack of it was walked while it ran, or looking for one was given up */
  uint8_t unseen_runs;     /* times it got the GVL before that */
  int64_t wall_booked;     /* wall time up to here is in a slot */
  int64_t cpu_flushed;     /* CPU time up to here is in a finished flush */
  int64_t gvl_pending;     /* time waited for the GVL that is in no slot yet; */
  int64_t gvl_wait_in_gap; /* the part of it since wall_booked */
  uint64_t tick_booked;    /* number of the last instant that is in a slot */
  uint32_t last_stack;     /* the last stack walked, valid in the slot generation below */
  uint32_t burn_stack;     /* the last stack seen burning CPU, likewise */
  uint64_t last_generation;
  uint64_t burn_generation;

  /* written at the thread's end, before phase becomes DEAD */
  int64_t ended_at;
  int64_t cpu_at_end;

  sn_due due;

  /* worker's lists */
  _Atomic bool listed;           /* is in the recently-suspended list or among the worker's hot threads */
  struct sn_thread *next_listed; /* written by whoever set `listed` */
  uint64_t peeked_ec;            /* worker only: see vm_peek.h */
  uint64_t hot_suspensions;      /* worker only: the suspension it watches */
  uint32_t native_proofs;        /* worker only: instants for which it counts as seen burning off the GVL */
  _Atomic bool burned_natively;  /* CPU without the GVL, since the last flush */

  _Atomic(struct sn_capture *) capture; /* collect_watch */

  /* see collect_labels.h */
  _Atomic uint32_t labels; /* what holds, as far as that was read */
  uint32_t last_labels;    /* what held with last_stack; belongs to the GVL */
  uint32_t burn_labels;    /* the same of burn_stack, as rows have it */

  struct sn_thread *next_free;
} sn_thread;

enum { SN_THREAD_LIMIT = 65536 };

/* All entries in use: the first `count` of `entries`, in no order. Changed with the GVL only; the worker reads. */
typedef struct sn_thread_registry {
  sn_thread *_Atomic *entries;
  _Atomic uint32_t count;
  uint32_t epoch;
  uint32_t last_number;
  sn_thread *free_list;
  uint64_t refused; /* threads beyond SN_THREAD_LIMIT, or for which there was no memory */
} sn_thread_registry;

extern sn_thread_registry sn_threads;

/* Once, at load. False: no memory. */
bool sn_threads_init(void);
/* A new engine run: all older entries are void. Contexts: gvl. */
void sn_threads_begin(void);
/* Lets all entries go. Contexts: gvl, with the worker stopped. */
void sn_threads_end(void);

/* The entry of a thread in this run, or NULL. Contexts: gvl; in events of the thread itself also without. */
sn_thread *sn_thread_of(VALUE thread);
/* Makes one. NULL (counted) when there is no room. Allocates by the C library only. Contexts: gvl, GVL events. */
sn_thread *sn_thread_register(VALUE thread);
/* Lets an entry go. Contexts: gvl. Not while it is listed. */
void sn_thread_release(sn_thread *t);

/* Marks the threads of all entries (a dead thread's name is wanted at the next flush). Contexts: gc mark. */
void sn_threads_mark(void);

/* Bytes of all entries. */
size_t sn_threads_memory(void);

/* How much of an instant's gap counts as burned, given that the thread's clock advanced by `cpu` in the `elapsed` time
 * since the instant was noted. Soon after it the question is whether the thread was on a CPU at that moment: all or
 * nothing. Later the share of the time that it was on one says more: on a busy machine a thread that burns all it gets
 * may get half. Of a thread that was off its CPU for most of that time, what coming back costs is taken off. */
int64_t sn_due_burned(int64_t gap, int64_t cpu, int64_t elapsed);

bool sn_due_try_lock(sn_due *due, uint32_t attempts);
void sn_due_unlock(sn_due *due);

#endif
