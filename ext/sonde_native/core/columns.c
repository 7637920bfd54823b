/* columns: see columns.h. Constants. */
#include "columns.h"

const sn_column_name sn_column_names[SN_COLUMN_COUNT] = {
    [SN_CPU_TIME] = {"cpu-time", "nanoseconds"},
    [SN_CPU_SAMPLES] = {"cpu-samples", "count"},
    [SN_WALL_TIME] = {"wall-time", "nanoseconds"},
    [SN_WALL_SAMPLES] = {"wall-samples", "count"},
    [SN_GVL_WAIT_TIME] = {"gvl-wait-time", "nanoseconds"},
    [SN_GC_TIME] = {"gc-time", "nanoseconds"},
    [SN_ALLOC_SAMPLES] = {"alloc-samples", "count"},
    [SN_ALLOC_SAMPLES_UNSCALED] = {"alloc-samples-unscaled", "count"},
    [SN_ALLOC_SIZE] = {"alloc-size", "bytes"},
    [SN_GC_DEBT_TIME] = {"gc-debt-time", "nanoseconds"},
    [SN_HEAP_LIVE_SAMPLES] = {"heap-live-samples", "count"},
    [SN_HEAP_LIVE_SIZE] = {"heap-live-size", "bytes"},
};

sn_column sn_column_preferred(uint32_t mask) {
  static const sn_column order[] = {SN_CPU_TIME, SN_WALL_TIME, SN_ALLOC_SAMPLES, SN_HEAP_LIVE_SIZE};
  for (size_t i = 0; i < SN_ARRAY_LENGTH(order); i++) {
    if (mask >> order[i] & 1) return order[i];
  }
  for (uint32_t i = 0; i < SN_COLUMN_COUNT; i++) {
    if (mask >> i & 1) return (sn_column)i;
  }
  return SN_CPU_TIME;
}
