/* sink: see sink.h. Called by the writers, on the thread that flushes; no locks. */
#include "sink.h"

#include <string.h>

void sn_sink_init(sn_sink *sink, sn_memory *memory) {
  *sink = (sn_sink){.memory = memory, .status = SN_OK};
}

void sn_sink_destroy(sn_sink *sink) {
  sn_memory_free(sink->memory, sink->bytes, sink->capacity);
  sn_sink_init(sink, sink->memory);
}

uint8_t *sn_sink_reserve(sn_sink *sink, size_t size) {
  if (sink->status != SN_OK) return NULL;
  if (size > SIZE_MAX - sink->length) {
    sink->status = SN_FULL;
    return NULL;
  }
  if (size > sink->capacity - sink->length || sink->bytes == NULL) {
    const size_t need = sink->length + size;
    sink->status = sn_memory_grow_large(sink->memory, (void **)&sink->bytes, &sink->capacity, need == 0 ? 1 : need,
                                        sizeof(uint8_t));
    if (sink->status != SN_OK) return NULL;
  }
  return sink->bytes + sink->length;
}

void sn_sink_write(sn_sink *sink, const void *bytes, size_t length) {
  uint8_t *room = sn_sink_reserve(sink, length);
  if (room == NULL || length == 0) return;
  memcpy(room, bytes, length);
  sink->length += length;
}
