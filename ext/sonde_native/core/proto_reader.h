/* proto_reader: walks the fields of a protocol buffers message that may be hostile. Knows no schema, allocates nothing.
 *
 * Every read checks the bounds; after a false answer the rest of the message means nothing. Contexts: any.
 */
#ifndef SONDE_CORE_PROTO_READER_H
#define SONDE_CORE_PROTO_READER_H

#include "base.h"

typedef struct sn_proto_span {
  const uint8_t *at;
  const uint8_t *end;
} sn_proto_span;

typedef struct sn_proto_field {
  uint32_t number;
  uint32_t wire_type;  /* SN_PROTO_VARINT, SN_PROTO_BYTES, ... */
  uint64_t value;      /* of a varint */
  sn_proto_span bytes; /* of a length-delimited field */
} sn_proto_field;

static inline size_t sn_proto_left(const sn_proto_span *span) {
  return (size_t)(span->end - span->at);
}

/* The general case of sn_proto_varint. */
SN_MUST_USE bool sn_proto_long_varint(sn_proto_span *span, uint64_t *value);

/* False if the varint is cut off or longer than ten bytes. Ids of one to three bytes are what a profile consists of. */
SN_MUST_USE static inline bool sn_proto_varint(sn_proto_span *span, uint64_t *value) {
  const uint8_t *at = span->at;
  if (SN_UNLIKELY(sn_proto_left(span) < 3)) return sn_proto_long_varint(span, value);
  uint32_t bits = at[0];
  if (bits >= 0x80) {
    bits = (bits & 0x7f) | (uint32_t)at[1] << 7;
    at++;
    if (at[0] >= 0x80) {
      bits = (bits & 0x3fff) | (uint32_t)at[1] << 14;
      at++;
      if (at[0] >= 0x80) return sn_proto_long_varint(span, value);
    }
  }
  span->at = at + 1;
  *value = bits;
  return true;
}

/* The next field; the span must not be empty. False if it is malformed. Fields of fixed size are skipped over: nothing
 * in a profile uses them. */
SN_MUST_USE bool sn_proto_next(sn_proto_span *span, sn_proto_field *field);

#endif
