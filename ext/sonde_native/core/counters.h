/* counters: a number for each reason in counters.def. Loss is data: whatever is dropped, late or skipped is counted
 * here.
 *
 * Threads: each counter is atomic; any thread may add. Contexts: any, signal too.
 */
#ifndef SONDE_CORE_COUNTERS_H
#define SONDE_CORE_COUNTERS_H

#include <stdatomic.h>

#include "base.h"

typedef enum sn_counter {
#define SN_COUNTER(name, meaning) SN_COUNT_##name,
#include "counters.def"
#undef SN_COUNTER
  SN_COUNTER_COUNT
} sn_counter;

typedef struct sn_counters {
  _Atomic uint64_t values[SN_COUNTER_COUNT];
} sn_counters;

static inline void sn_count_many(sn_counters *counters, sn_counter counter, uint64_t n) {
  atomic_fetch_add_explicit(&counters->values[counter], n, memory_order_relaxed);
}

static inline void sn_count(sn_counters *counters, sn_counter counter) {
  sn_count_many(counters, counter, 1);
}

static inline uint64_t sn_counted(const sn_counters *counters, sn_counter counter) {
  return atomic_load_explicit(&counters->values[counter], memory_order_relaxed);
}

static inline void sn_counters_reset(sn_counters *counters) {
  for (int i = 0; i < SN_COUNTER_COUNT; i++) atomic_store_explicit(&counters->values[i], 0, memory_order_relaxed);
}

/* Static texts; "" past the last. */
static inline const char *sn_counter_name(sn_counter counter) {
  switch (counter) {
#define SN_COUNTER(name, meaning) \
  case SN_COUNT_##name:           \
    return #name;
#include "counters.def"
#undef SN_COUNTER
    case SN_COUNTER_COUNT:
      break;
  }
  return "";
}

static inline const char *sn_counter_meaning(sn_counter counter) {
  switch (counter) {
#define SN_COUNTER(name, meaning) \
  case SN_COUNT_##name:           \
    return meaning;
#include "counters.def"
#undef SN_COUNTER
    case SN_COUNTER_COUNT:
      break;
  }
  return "";
}

#endif
