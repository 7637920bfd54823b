/* proto_writer: see proto_writer.h. Called by the writers on the flushing thread; no locks. */
#include "proto_writer.h"

#include <string.h>

static uint64_t tag(uint32_t field, uint32_t wire_type) {
  return (uint64_t)field << 3 | wire_type;
}

static void put(sn_sink *sink, uint64_t first, uint64_t second) {
  uint8_t *room = sn_sink_reserve(sink, 2 * SN_VARINT_MAX);
  if (room == NULL) return;
  uint8_t *end = sn_proto_put_varint(sn_proto_put_varint(room, first), second);
  sink->length += (size_t)(end - room);
}

void sn_proto_uint(sn_sink *sink, uint32_t field, uint64_t value) {
  if (value != 0) put(sink, tag(field, SN_PROTO_VARINT), value);
}

void sn_proto_uint_always(sn_sink *sink, uint32_t field, uint64_t value) {
  put(sink, tag(field, SN_PROTO_VARINT), value);
}

void sn_proto_fixed64(sn_sink *sink, uint32_t field, uint64_t value) {
  if (value == 0) return;
  uint8_t *room = sn_sink_reserve(sink, SN_VARINT_MAX + 8);
  if (room == NULL) return;
  uint8_t *at = sn_proto_put_varint(room, tag(field, SN_PROTO_FIXED64));
  for (int i = 0; i < 8; i++) *at++ = (uint8_t)(value >> 8 * i);
  sink->length += (size_t)(at - room);
}

void sn_proto_bytes(sn_sink *sink, uint32_t field, const void *bytes, size_t length) {
  put(sink, tag(field, SN_PROTO_BYTES), length);
  sn_sink_write(sink, bytes, length);
}

size_t sn_proto_begin(sn_sink *sink, uint32_t field) {
  put(sink, tag(field, SN_PROTO_BYTES), 0);
  return sink->length;
}

void sn_proto_end(sn_sink *sink, size_t begin) {
  if (sink->status != SN_OK) return;
  const size_t length = sink->length - begin;
  uint8_t varint[SN_VARINT_MAX];
  const size_t size = (size_t)(sn_proto_put_varint(varint, length) - varint);
  if (size > 1 && sn_sink_reserve(sink, size - 1) == NULL) return;
  uint8_t *start = sink->bytes + begin;
  if (size > 1) memmove(start + size - 1, start, length);
  memcpy(start - 1, varint, size);
  sink->length += size - 1;
}

/* Lists are written in blocks, so that room for the longest varints is asked for a few numbers only. */
enum { BLOCK = 64 };

void sn_proto_packed_ids(sn_sink *sink, uint32_t field, const uint32_t *numbers, uint32_t n, uint32_t add) {
  if (n == 0) return;
  const size_t begin = sn_proto_begin(sink, field);
  for (uint32_t done = 0; done < n;) {
    uint8_t *room = sn_sink_reserve(sink, BLOCK * SN_VARINT_MAX);
    if (room == NULL) return;
    uint8_t *at = room;
    const uint32_t stop = n - done < BLOCK ? n : done + BLOCK;
    while (done < stop) at = sn_proto_put_varint(at, (uint64_t)numbers[done++] + add);
    sink->length += (size_t)(at - room);
  }
  sn_proto_end(sink, begin);
}

void sn_proto_packed_ints(sn_sink *sink, uint32_t field, const int64_t *numbers, uint32_t n) {
  if (n == 0) return;
  const size_t begin = sn_proto_begin(sink, field);
  for (uint32_t i = 0; i < n; i++) {
    uint8_t *room = sn_sink_reserve(sink, SN_VARINT_MAX);
    if (room == NULL) return;
    sink->length += (size_t)(sn_proto_put_varint(room, (uint64_t)numbers[i]) - room);
  }
  sn_proto_end(sink, begin);
}
