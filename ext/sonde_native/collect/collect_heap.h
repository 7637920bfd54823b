/* collect_heap: what stays. Of the objects that collect_alloc picked, the living ones are followed by weak references.
 *
 * A followed object stands for as many as its pick did. At a flush those that are alive and have seen a collection are
 * booked with the stack that made them, their size now and their age. (Of those that have not, nobody knows whether
 * they live.) At most SN_HEAP_LIMIT are followed: past that, a random half is let go, the others stand for twice as
 * many, and of later picks only half are taken. How old objects got is counted, too.
 *
 * Contexts: gvl, at safepoints, unless said otherwise.
 */
#ifndef SONDE_COLLECT_HEAP_H
#define SONDE_COLLECT_HEAP_H

#include <ruby.h>

#include "../core/alloc_estimate.h"
#include "collect_state.h"

enum { SN_HEAP_LIMIT = 8192, SN_HEAP_BATCH = 128 };

#ifdef SONDE_TESTING
/* Follows fewer, from now on. */
void sn_heap_testing_limit(uint32_t limit);
#endif

/* The reason why it cannot be asked for, or NULL. */
const char *sn_heap_refusal(void);
/* NULL, or a static reason. May raise; then it has not begun. */
const char *sn_heap_begin(void);
void sn_heap_end(void);
bool sn_heap_is_on(void);

typedef struct sn_heap_candidate {
  VALUE object;
  const sn_raw_store *store; /* where its stack and detail are */
  uint32_t stack, thread, detail;
  double weight; /* not scaled to the VM's count yet */
} sn_heap_candidate;

/* Follows the picks of one window, perhaps. They must be held by the caller's stack. May run other threads. */
void sn_heap_follow(const sn_heap_candidate *candidates, uint32_t count);

/* At a job: notices what the last collections took. */
void sn_heap_job(void);

/* At a flush, before it settles: looks who is alive, and how large. May run Ruby code; may raise. */
void sn_heap_look(void);
/* Those picked in this slot stand for so many times more. No Ruby code. */
void sn_heap_scale(double factor);
/* Books what was seen at the last look. No Ruby code. */
void sn_heap_settle(void);

/* Contexts: gc mark. */
void sn_heap_mark(void);
/* In a forked child. Plain stores only. */
void sn_heap_forget(void);
/* Bytes kept for it outside of the VM. */
size_t sn_heap_memory(void);

enum { SN_HEAP_AGES = 8, SN_HEAP_SPANS = 7 };
extern const char *const sn_heap_age_names[SN_HEAP_AGES];   /* in collections */
extern const char *const sn_heap_span_names[SN_HEAP_SPANS]; /* in seconds */

typedef struct sn_heap_counts {
  uint32_t followed;
  double taken; /* share of the picks that is followed */
  uint64_t died;
  double ages[SN_HEAP_AGES], spans[SN_HEAP_SPANS]; /* shares of the objects that died */
  sn_alloc_sum objects, bytes;                     /* of windows, as they were pictured last */
} sn_heap_counts;

sn_heap_counts sn_heap_counted(void);
/* A line for a profile's comments; empty when there is nothing to say. */
void sn_heap_describe(char *text, size_t size);

#endif
