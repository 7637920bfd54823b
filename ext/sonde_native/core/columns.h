/* columns: the value columns that Sonde itself writes, in the order in which a profile lists them.
 *
 * A raw store keeps all of them in each row; a profile keeps those its modes ask for. Which overlap: wall-time contains
 * gvl-wait-time and the wall part of gc-time; cpu-time contains the CPU part of gc-time.
 * Contexts: any; read only.
 */
#ifndef SONDE_CORE_COLUMNS_H
#define SONDE_CORE_COLUMNS_H

#include "base.h"

typedef enum sn_column {
  SN_CPU_TIME,
  SN_CPU_SAMPLES,
  SN_WALL_TIME,
  SN_WALL_SAMPLES,
  SN_GVL_WAIT_TIME,
  SN_GC_TIME,
  SN_ALLOC_SAMPLES,
  SN_ALLOC_SAMPLES_UNSCALED,
  SN_ALLOC_SIZE,
  SN_GC_DEBT_TIME,
  SN_HEAP_LIVE_SAMPLES,
  SN_HEAP_LIVE_SIZE,
  SN_COLUMN_COUNT
} sn_column;

typedef struct sn_column_name {
  const char *type, *unit; /* as pprof has them */
} sn_column_name;

extern const sn_column_name sn_column_names[SN_COLUMN_COUNT];

/* Of the columns in a mask, the one that a reader of the profile sees first. */
sn_column sn_column_preferred(uint32_t mask);

#endif
