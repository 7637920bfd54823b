/* proto_reader: see proto_reader.h. Called by the pprof reader, on the thread that reads; no locks. */
#include "proto_reader.h"

#include "proto_writer.h"

bool sn_proto_long_varint(sn_proto_span *span, uint64_t *value) {
  uint64_t result = 0;
  const size_t left = sn_proto_left(span);
  const size_t most = left < SN_VARINT_MAX ? left : SN_VARINT_MAX;
  for (size_t i = 0; i < most; i++) {
    const uint8_t byte = span->at[i];
    result |= (uint64_t)(byte & 0x7f) << (7 * i); /* what passes bit 63 is dropped, as everyone does */
    if (byte < 0x80) {
      span->at += i + 1;
      *value = result;
      return true;
    }
  }
  return false;
}

static bool take_bytes(sn_proto_span *span, uint64_t length, sn_proto_span *bytes) {
  if (length > sn_proto_left(span)) return false;
  *bytes = (sn_proto_span){.at = span->at, .end = span->at + length};
  span->at += length;
  return true;
}

bool sn_proto_next(sn_proto_span *span, sn_proto_field *field) {
  uint64_t tag, length;
  if (!sn_proto_varint(span, &tag) || tag >> 3 > UINT32_MAX) return false;
  field->number = (uint32_t)(tag >> 3);
  field->wire_type = (uint32_t)(tag & 7);
  field->value = 0;
  switch (field->wire_type) {
    case SN_PROTO_VARINT:
      return sn_proto_varint(span, &field->value);
    case SN_PROTO_BYTES:
      return sn_proto_varint(span, &length) && take_bytes(span, length, &field->bytes);
    case SN_PROTO_FIXED64:
      return take_bytes(span, 8, &field->bytes);
    case SN_PROTO_FIXED32:
      return take_bytes(span, 4, &field->bytes);
    default:
      return false;
  }
}
