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

/* False if the varint is cut off or longer than ten bytes. */
SN_MUST_USE static inline bool sn_proto_varint(sn_proto_span *span, uint64_t *value) {
  if (SN_LIKELY(span->at < span->end && *span->at < 0x80)) {
    *value = *span->at++;
    return true;
  }
  return sn_proto_long_varint(span, value);
}

/* The next field; the span must not be empty. False if it is malformed. Fields of fixed size are skipped over: nothing
 * in a profile uses them. */
SN_MUST_USE bool sn_proto_next(sn_proto_span *span, sn_proto_field *field);

#endif
