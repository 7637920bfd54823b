/* columns: the value columns that Sonde itself writes, in the order in which a profile lists them.
 *
 * A raw store keeps all of them in each row; a profile keeps those its modes ask for. Which overlap: wall-time contains
 * gvl-wait-time and the wall part of gc-time; cpu-time contains the CPU part of gc-time.
 */
#ifndef SONDE_CORE_COLUMNS_H
#define SONDE_CORE_COLUMNS_H

/*         symbol                 pprof type                unit */
#define SN_COLUMNS(X)                                          \
  X(CPU_TIME, "cpu-time", "nanoseconds")                       \
  X(CPU_SAMPLES, "cpu-samples", "count")                       \
  X(WALL_TIME, "wall-time", "nanoseconds")                     \
  X(WALL_SAMPLES, "wall-samples", "count")                     \
  X(GVL_WAIT_TIME, "gvl-wait-time", "nanoseconds")             \
  X(GC_TIME, "gc-time", "nanoseconds")                         \
  X(ALLOC_SAMPLES, "alloc-samples", "count")                   \
  X(ALLOC_SAMPLES_UNSCALED, "alloc-samples-unscaled", "count") \
  X(ALLOC_SIZE, "alloc-size", "bytes")                         \
  X(HEAP_LIVE_SAMPLES, "heap-live-samples", "count")           \
  X(HEAP_LIVE_SIZE, "heap-live-size", "bytes")

typedef enum sn_column {
#define X(symbol, type, unit) SN_##symbol,
  SN_COLUMNS(X)
#undef X
      SN_COLUMN_COUNT
} sn_column;

#endif
