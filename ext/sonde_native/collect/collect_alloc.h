/* collect_alloc: who allocates. Windows at random instants in which objects are counted and some are picked.
 *
 * The VM's hook is on in a window only. Windows open and close at safepoints, so a stretch between two safepoints (a
 * long call of a C function, say) is seen whole or not at all; which ones are seen depends on where they begin:
 *  - by time (no compiled code): from an instant drawn by the worker until the program, our own work left out, went
 *    on for a while. The hook stays on until the job that closes the window runs, and counts then only the thread
 *    that was at work at its end.
 *  - by count (compiled code, which runs slower for a while after each interrupt, so that time is no measure): the
 *    program is cut at collections and at jobs; each piece is drawn by a coin, and then counted whole.
 *
 * Picked objects wait until the next window opens (or a flush): then they have the size that is theirs. Those that are
 * to be followed (collect_heap) only wait until their own window is closed. They are marked until then; there are at
 * most SN_ALLOC_PICKS. Scouts, objects that are looked at for their size only, are marked until their window is closed.
 *
 * core/alloc_estimate.h and core/alloc_sizes.h have the arithmetic, docs/internals/allocation.md the reasons and what
 * was measured.
 *
 * Contexts: gvl, unless said otherwise.
 */
#ifndef SONDE_COLLECT_ALLOC_H
#define SONDE_COLLECT_ALLOC_H

#include "../core/alloc_estimate.h"
#include "collect_state.h"

enum { SN_ALLOC_PICKS = 128 };

/* Begins. NULL, or a static reason why allocations cannot be watched here. May raise; then it has not begun. */
const char *sn_alloc_begin(void);
/* Ends; the hook is off afterwards. May be called twice. */
void sn_alloc_end(void);
bool sn_alloc_is_on(void);
/* Why it stopped by itself since it began, or NULL. */
const char *sn_alloc_problem(void);
/* The reason why it cannot be asked for, or NULL. */
const char *sn_alloc_refusal(void);

/* At every job, on whatever thread. */
void sn_alloc_job(void);
/* A collection begins, on the calling thread. Contexts: gc. */
void sn_alloc_gc_enter(void);
/* Whether a thread that gets the GVL should ask for a job. Contexts: any. */
bool sn_alloc_wants_job(void);

/* The worker's part: when it wants to act, and that. Contexts: the worker. */
int64_t sn_alloc_next_time(void);
void sn_alloc_act(int64_t now);

typedef struct sn_alloc_result {
  int64_t total;        /* objects allocated in the slot; 0: allocations were not watched */
  sn_alloc_error error; /* in objects and bytes */
} sn_alloc_result;

/* Before a flush settles: what may run Ruby code. May raise. */
void sn_alloc_look_around(void);
/* At a flush, before the flip: books everything. */
sn_alloc_result sn_alloc_settle(void);

/* Contexts: gc mark. */
void sn_alloc_mark(void);

/* For tests: windows by count, whatever code runs. Where jobs need a signal there are none by count. */
void sn_alloc_force_by_count(bool by_count);

/* In a forked child. Plain stores only. */
void sn_alloc_forget(void);

/* One line for a profile's comments. */
void sn_alloc_describe(const sn_alloc_error *error, char *text, size_t size);

typedef struct sn_alloc_counts {
  uint64_t windows, empty, objects, picks, unmeasured;
  double hook_ns, interval_ms, coin;
  bool by_count;
} sn_alloc_counts;

/* Since the engine started; for the status. */
sn_alloc_counts sn_alloc_counted(void);

#endif
