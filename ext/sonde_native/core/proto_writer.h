/* proto_writer: varints, fields, nested messages and packed lists of protocol buffers, into a sink. Knows no schema.
 *
 * A message or packed list is opened with one byte for its length; closing it moves the contents where the length needs
 * more. Most are short, so that costs less than measuring them first. Errors stay in the sink's status.
 * Contexts: nogvl, gvl.
 */
#ifndef SONDE_CORE_PROTO_WRITER_H
#define SONDE_CORE_PROTO_WRITER_H

#include "base.h"
#include "sink.h"

enum { SN_PROTO_VARINT = 0, SN_PROTO_FIXED64 = 1, SN_PROTO_BYTES = 2, SN_PROTO_FIXED32 = 5, SN_VARINT_MAX = 10 };

/* Writes a varint and returns where it ends; room for SN_VARINT_MAX bytes. */
static inline uint8_t *sn_proto_put_varint(uint8_t *at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *at++ = (uint8_t)value;
  return at;
}

/* A varint field; 0 is the default of every field and is left out. */
void sn_proto_uint(sn_sink *sink, uint32_t field, uint64_t value);
static inline void sn_proto_int(sn_sink *sink, uint32_t field, int64_t value) {
  sn_proto_uint(sink, field, (uint64_t)value);
}
/* The same, but a 0 is written too: a member of a oneof. */
void sn_proto_uint_always(sn_sink *sink, uint32_t field, uint64_t value);
/* Eight bytes, little endian; left out if 0. */
void sn_proto_fixed64(sn_sink *sink, uint32_t field, uint64_t value);
/* A string or bytes; written even if empty, as repeated fields need it. */
void sn_proto_bytes(sn_sink *sink, uint32_t field, const void *bytes, size_t length);

/* Opens a nested message or packed list; give what it returns to end. */
size_t sn_proto_begin(sn_sink *sink, uint32_t field);
void sn_proto_end(sn_sink *sink, size_t begin);

/* A packed list; nothing if empty. `add` is added to each number. */
void sn_proto_packed_ids(sn_sink *sink, uint32_t field, const uint32_t *numbers, uint32_t n, uint32_t add);
void sn_proto_packed_ints(sn_sink *sink, uint32_t field, const int64_t *numbers, uint32_t n);

#endif
