/* collect_alloc_state: what the parts of collect_alloc share. Private to them.
 *
 *  collect_alloc.c         life, jobs, flushes
 *  collect_alloc_window.c  one window: the hook, picks, opening, closing
 *  collect_alloc_time.c    when windows are, by time: the worker
 *  collect_alloc_count.c   the same by count: collections, jobs, a coin
 */
#ifndef SONDE_COLLECT_ALLOC_STATE_H
#define SONDE_COLLECT_ALLOC_STATE_H

#include "../core/alloc_sizes.h"
#include "collect_alloc.h"

enum { SN_PICKS_BY_TIME = 1, SN_PICKS_BY_COUNT = 2, SN_PICKS_FOR_HEAP = 4 }; /* see sn_alloc_next_pick */

static const double SN_ALLOC_GAP_NS = 10e6; /* mean time between windows, at least */
static const double SN_ALLOC_LEAST_COIN = 1.0 / 2000;

/* The worker moves idle -> asked -> idle (nobody came) and open -> closing; jobs asked -> open and closing -> idle. By
 * count the worker moves nothing. */
enum sn_alloc_window_state { SN_WINDOW_IDLE, SN_WINDOW_ASKED, SN_WINDOW_OPEN, SN_WINDOW_CLOSING };

typedef struct sn_alloc_pick {
  VALUE object; /* marked; Qfalse: not to be measured */
  uint32_t stack, thread, labels, detail;
  double weight;
  uint64_t place;
} sn_alloc_pick;

/* An object that is looked at for its size only, when its window is closed. */
typedef struct sn_alloc_scout {
  VALUE object; /* marked */
  uint64_t place;
} sn_alloc_scout;

/* What a window had seen when its time was up. */
typedef struct sn_window_end {
  int64_t ran_ns; /* how long the program had a CPU since the window was asked for */
  int64_t stacks_ns;
  uint64_t objects;
} sn_window_end;

typedef struct sn_alloc_state {
  bool on;
  bool stray;   /* a forked child inherited the hook switched on */
  bool stopped; /* see before_ractor */
  _Atomic bool by_count;
  bool forced_by_count; /* in tests */
  bool other_ractors;
  const char *problem;
  double hook_ns;      /* what the hook costs an object, */
  double hook_size_ns; /* and where places of large objects are known */
  uint64_t random;

  /* the window */
  _Atomic uint32_t state;
  _Atomic uint64_t objects;  /* written by the hook */
  _Atomic int64_t stacks_ns; /* likewise */
  uint64_t next_pick, next_scout;
  uint32_t picks_wanted; /* m of this window */
  _Atomic(VALUE) inside; /* closing: who is still counted */
  double coin;           /* by count: the chance that this one had */
  sn_window_end end;     /* by time: written by the worker before it moves the window to closing */
  _Atomic int64_t asked_at;
  _Atomic double gap_ns; /* mean gap to the next window */
  double asked_gap_ns;

  sn_alloc_scout scouts[SN_SIZES_SCOUTS];
  uint32_t scout_count;
  uint32_t scouted; /* also those that were not kept: nothing but their slot */
  sn_alloc_sizes sizes;

  /* its picks, until they are booked */
  sn_alloc_pick picks[SN_ALLOC_PICKS];
  uint32_t pick_count;
  double factor;
  uint64_t collections; /* so far, when the window was closed */

  /* of this slot */
  sn_alloc_error error; /* in units of nothing in particular until it is scaled */
  double seen;          /* objects in windows, times factors */
  double open_sum;      /* length of windows, weighted by gaps */
  _Atomic double empty_sum;
  _Atomic uint64_t empty;
  uint64_t count_at_start;
  uint64_t count_at_stop; /* where it stopped */
  int64_t started;

  /* by count */
  _Atomic bool tick;
  bool again; /* the piece after the one that is closing was drawn */
  double again_coin, next_coin;
  uint64_t cuts;
  bool weighed;
  int64_t looked_at;
  uint64_t looked_count;
  double objects_a_second, cuts_a_second;

  /* the cost by time */
  uint32_t since_look;
  double cost_ns;

  sn_alloc_counts counts;
} sn_alloc_state;

extern sn_alloc_state sn_alloc;

static inline uint32_t sn_alloc_window(void) {
  return atomic_load_explicit(&sn_alloc.state, memory_order_acquire);
}

static inline bool sn_alloc_move(uint32_t from, uint32_t to) {
  return atomic_compare_exchange_strong(&sn_alloc.state, &from, to);
}

static inline uint64_t sn_alloc_objects(void) {
  return atomic_load_explicit(&sn_alloc.objects, memory_order_relaxed);
}

/* A window. Contexts: gvl. */

/* The hook's callback: inside the VM's allocation. */
void sn_alloc_born(const void *birth);
/* Before a first object is counted. */
void sn_alloc_reset(void);
/* A window was asked for, and this is a safepoint. */
void sn_alloc_open(void);
/* The window is over, and no worker has anything to do with it any more. end: by time. */
void sn_alloc_close(const sn_window_end *end);
/* A flush, or the end of watching, cuts the window off, and books it. */
void sn_alloc_cut(void);
/* Books what the last window picked. Its stacks are of the active slot: a flush comes here before it flips. */
void sn_alloc_book(void);

/* What the window has seen until now. Contexts: also the worker. */
sn_window_end sn_alloc_end_now(void);
/* How long the program would have taken for that without us, in nanoseconds. Contexts: also the worker. */
double sn_alloc_length(const sn_window_end *end);

/* By count. Contexts: gvl. */

/* At a safepoint, after a window that was closing is closed. */
void sn_alloc_count_job(void);

#endif
