/* raw_convert: turns one flushed raw store into a profile.
 *
 * CPU time is calibrated here. A row's CPU_TIME column holds a weight: the time between sampling instants at which its
 * stack was seen burning CPU. That makes shares unbiased wherever in a burst of work an instant falls; the exact CPU
 * time that each thread used in the window is then spread over the thread's rows in proportion to their weights (the
 * sum is exact to the nanosecond: rounding is carried from row to row). A thread that used CPU but has no such row gets
 * one row with its fallback stack and cpu-samples 0. GC_TIME is calibrated likewise, over all rows, where a total is
 * given. Where rows overflowed (row 0 has weight, and thread 0 no summary) nobody knows whose weight that was: row 0
 * gets its part of the exact total of all threads, and every thread's rows get so much less. The grand total stays
 * exact. Rows whose values are all zero make no sample; negative values count as zero.
 *
 * GC_DEBT_TIME is calibrated to the same total as GC_TIME.
 * ALLOC_SAMPLES is calibrated to one total too; ALLOC_SIZE is multiplied by the same factor.
 *
 * Contexts: nogvl, gvl. Reads the store, which its serialiser owns; writes only `out`.
 */
#ifndef SONDE_CORE_RAW_CONVERT_H
#define SONDE_CORE_RAW_CONVERT_H

#include "profile.h"
#include "raw_store.h"

typedef struct sn_thread_summary {
  uint32_t number;          /* the rows' key.thread */
  uint32_t fallback_stack;  /* raw stack id that gets CPU time where no row has a weight, */
  uint32_t fallback_labels; /* and its labels, as in the rows' key.labels */
  int64_t cpu_time;         /* exact CPU time in this window; negative: unknown, the weights stand as they are */
  const char *id;           /* label "thread id"; NULL: no label. Borrowed */
  size_t id_length;
  const char *name; /* label "thread name"; NULL: no label. Borrowed */
  size_t name_length;
} sn_thread_summary;

/* The labels that stand for one of the store's details; ids of `out`. */
typedef struct sn_detail_labels {
  sn_label labels[2];
  uint32_t count;
} sn_detail_labels;

typedef struct sn_convert_input {
  const sn_raw_store *store;
  const uint32_t *locations;        /* raw location id -> location id in `out`; store->location_count entries */
  const sn_thread_summary *threads; /* ascending by number */
  uint32_t thread_count;
  const uint32_t
      *label_sets; /* the rows' key.labels -> label set id in `out`, [0] is 0; NULL: the rows' labels are left out */
  uint32_t label_set_count;
  const sn_detail_labels *details; /* of each of the store's details; NULL: they are left out */
  uint32_t columns;                /* bit mask of sn_column: which become sample types, in column order */
  int64_t gc_time;     /* exact total of GC_TIME; negative: the rows stand as they are. Needs GC rows to land on */
  int64_t alloc_total; /* total of ALLOC_SAMPLES; 0: unknown, the rows stand as they are. Needs rows to land on */
} sn_convert_input;

/* out must have been given its locations, and no sample types yet. SN_OK, or what the profile answered. */
SN_MUST_USE sn_status sn_raw_convert(const sn_convert_input *input, sn_profile *out);

/* The value of the label "state", or NULL for SN_STATE_NONE. */
const char *sn_thread_state_text(sn_thread_state state);

#endif
