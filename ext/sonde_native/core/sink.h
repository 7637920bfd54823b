/* sink: where a writer puts bytes; and the one in memory. Contexts: nogvl, gvl. */
#ifndef SONDE_CORE_SINK_H
#define SONDE_CORE_SINK_H

#include "base.h"
#include "memory.h"
#include "status.h"

/* A growing buffer. After a failure it stays failed (status) and ignores writes, so that a writer may check once. */
typedef struct sn_sink {
  sn_memory *memory; /* borrowed */
  uint8_t *bytes;    /* owned */
  size_t length, capacity;
  sn_status status;
} sn_sink;

void sn_sink_init(sn_sink *sink, sn_memory *memory);
void sn_sink_destroy(sn_sink *sink);
/* Room for `size` more bytes; NULL when it failed. The caller adds to length what it used. */
uint8_t *sn_sink_reserve(sn_sink *sink, size_t size);
void sn_sink_write(sn_sink *sink, const void *bytes, size_t length);

#endif
