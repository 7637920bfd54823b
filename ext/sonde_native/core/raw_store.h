/* raw_store: what the sampler writes: (stack, thread, state, labels, detail) -> a vector of values.
 *
 * Workload: a few thousand writes a second at most, nearly all to a stack and a row seen before; cleared as a whole.
 * A frame is one word that only the VM layer understands (never followed here), on some Rubies a second one (aux), and
 * a line; words below SN_FRAME_FIRST_REAL are Sonde's own visible frames. Stacks are given leaf first.
 *
 * A known stack costs one hash over the arrays given and one comparison; nothing is allocated for it.
 * Stack 0 is always the one-frame stack "(overflow)"; row 0 is always (stack 0, thread 0). What does not fit under the
 * memory limit, or fails to allocate, lands there and is counted: nothing is ever dropped.
 * Threads:   none inside. One owner at a time; the recorder's slot lock provides that.
 * Contexts:  gvl, gc (allocates by the C library only). Not signal.
 * See also:  record/recorder.h (who owns the slots), raw_convert.h (who reads).
 */
#ifndef SONDE_CORE_RAW_STORE_H
#define SONDE_CORE_RAW_STORE_H

#include "base.h"
#include "columns.h"
#include "hash_index.h"
#include "memory.h"
#include "raw_detail.h"
#include "stack_table.h"
#include "status.h"

/* Frames that stand for what cannot be shown. */
enum sn_special_frame {
  SN_FRAME_OVERFLOW = 1,    /* past the memory cap */
  SN_FRAME_NATIVE = 2,      /* a living thread without a readable stack */
  SN_FRAME_NOT_SAMPLED = 3, /* time of a thread that was never seen */
  SN_FRAME_OMITTED = 4,     /* the line says how many frames were left out here */
  SN_FRAME_GC = 5,
  SN_FRAME_SAMPLER = 6, /* Sonde's own thread */
  SN_FRAME_FIRST_REAL = 4096
};

/* States of a thread, as the label "state" shows them. */
typedef enum sn_thread_state {
  SN_STATE_NONE = 0,
  SN_STATE_RUNNING,
  SN_STATE_GVL_WAIT,
  SN_STATE_BLOCKED,
  SN_STATE_NATIVE, /* burning CPU without the GVL */
  SN_STATE_COUNT
} sn_thread_state;

typedef struct sn_raw_location {
  uint64_t frame;
  uint64_t aux; /* a second word of the VM layer's, that tells methods apart which share a frame; 0: none */
  int32_t line;
} sn_raw_location;

typedef struct sn_row_key {
  uint32_t stack;
  uint32_t thread; /* a number of the thread registry; 0: none */
  uint32_t labels; /* 0: none */
  uint32_t state;  /* sn_thread_state */
  uint32_t detail; /* id in `details`; 0: none */
} sn_row_key;

typedef struct sn_row {
  sn_row_key key;
  int64_t values[SN_COLUMN_COUNT];
} sn_row;

typedef struct sn_raw_store {
  sn_memory *memory; /* borrowed; shared account of this slot */
  /* owned by the writer; protected by the slot's lock */
  sn_hash_index location_index;
  sn_raw_location *locations; /* ids are positions; read by the marker too, see location_count */
  uint32_t location_capacity;
  _Atomic uint32_t location_count; /* published last: a GC mark function may walk [0, count) between two writes */
  sn_stack_table stacks;           /* of location ids, leaf first */
  sn_hash_index raw_stack_index;   /* hash of the raw arrays -> stack id */
  sn_detail_table details;
  sn_hash_index row_index;
  sn_row *rows;
  uint32_t row_count;
  uint32_t row_capacity;
  uint64_t overflowed_stacks; /* times a stack had to become "(overflow)" */
  uint64_t overflowed_rows;
} sn_raw_store;

/* Makes an empty store (with stack 0 and row 0). SN_OK or SN_NO_MEMORY. */
SN_MUST_USE sn_status sn_raw_store_init(sn_raw_store *store, sn_memory *memory);
void sn_raw_store_destroy(sn_raw_store *store);

/* Forgets everything but keeps the storage up to a modest size, gives back the rest. */
void sn_raw_store_reset(sn_raw_store *store);

/* The id of a stack of n frames, leaf first; aux may be NULL, which stands for zeros. n == 0 gives the one-frame stack
 * SN_FRAME_NATIVE. Answers stack 0 (and counts) where the stack cannot be kept. */
uint32_t sn_raw_store_stack(sn_raw_store *store, const uint64_t *frames, const uint64_t *aux, const int32_t *lines,
                            uint32_t n);

/* The row of a key, made when new; the overflow row (and counts) where it cannot be kept. Never NULL. Borrowed until
 * the next call. */
sn_row *sn_raw_store_row(sn_raw_store *store, sn_row_key key);

static inline void sn_raw_store_add(sn_raw_store *store, sn_row_key key, sn_column column, int64_t value) {
  sn_raw_store_row(store, key)->values[column] += value;
}

#endif
