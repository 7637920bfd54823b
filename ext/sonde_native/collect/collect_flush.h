/* collect_flush: turns what the active slot holds into a profile; windows that share the engine.
 *
 * A flush, step by step:
 *  1. with the GVL, in one go: every thread is settled up to now (collect_sample), clocks and names of threads are
 *     noted, the recorder flips. All samplers hold the GVL, so none is inside a slot here and the border is exact. (The
 *     design wanted the flip without the GVL; settling needs it anyway, and the rest does not.)
 *  2. with the GVL, in batches: frames get their names
 *  3. without the GVL: rows become samples (core/raw_convert), which are merged into every open window
 *  4. the slot is cleared
 * One flush at a time; a second caller waits. Exceptions from outside wait until the flush is over (the callers see to
 * that by Thread.handle_interrupt); one from inside (no memory) gives the slot back and is raised.
 */
#ifndef SONDE_COLLECT_FLUSH_H
#define SONDE_COLLECT_FLUSH_H

#include <ruby.h>

#include "../core/alloc_estimate.h"
#include "../core/profile.h"
#include "collect_state.h"

/* A consumer of samples. Owned by its Ruby object; linked while open. */
typedef struct sn_window {
  sn_profile *profile; /* what was merged so far; owned; NULL when it was taken */
  bool open;
  bool abandoned;       /* its object is gone; freed when the flush that may be reading it has ended */
  uint32_t columns;     /* bit mask of sn_column */
  int64_t started_real; /* UTC nanoseconds */
  int64_t started;      /* monotonic */
  int64_t interval_ns;  /* as asked for, */
  double budget;        /* likewise, */
  size_t memory_limit;  /* and likewise */
  uint64_t instants;    /* how many there had been when its profile began */
  sn_alloc_error alloc; /* how exact it is */
  sn_status failed;     /* a merge that did not work; said in the profile's comments */
  struct sn_window *next;
} sn_window;

/* All open windows; belongs to the GVL. */
extern sn_window *sn_windows;

/* A profile on the heap (it has pointers into itself), initialised or NULL; and its end. Contexts: any without
 * signal. */
sn_profile *sn_profile_new(void);
void sn_profile_free(sn_profile *profile);

/* Flushes what is in the active slot into every open window. What lives on the heap is a picture of one moment, and
 * goes to `picture_for` only (NULL: nobody). GVL; may raise. */
void sn_flush(const sn_window *picture_for);

/* Waits until no flush is under way and keeps others out until the end. GVL (given up while waiting). False: this very
 * thread is inside one (a signal handler of the program that interrupted it). May raise while waiting. */
bool sn_flush_begin(void);
void sn_flush_end(void);
/* In a forked child: other threads neither flush nor wait. Plain stores only. */
void sn_flush_forget_others(void);
/* Contexts: gvl, gc; the second also inside fork. */
bool sn_flush_is_under_way(void);
bool sn_flush_is_of_another_thread(void);

/* Registers the objects that mark frames and threads. Once, at load. */
void sn_flush_init(void);

#endif
