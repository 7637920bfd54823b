/* pprof_sample_reader: the part of the pprof reader that reads samples, which is where its time goes. Called by
 * pprof_reader.c, after everything that samples refer to was read; on the thread that reads; no locks. */
#include "pprof_fields.h"
#include "pprof_reader_state.h"
#include "proto_writer.h"

#include <string.h>

/* Room for `more` frames. What all samples have together is bounded by the length of the input, so that a small file
 * with one location of many lines cannot keep us busy for hours. */
static sn_status make_room(sn_reader *reader, uint32_t more) {
  if (SN_UNLIKELY(more > reader->frames_left))
    return sn_reader_fail(reader, SN_TOO_LARGE, "too many frames for its length");
  reader->frames_left -= more;
  if (SN_LIKELY(more <= reader->frame_capacity - reader->depth)) return SN_OK;
  if (more > UINT32_MAX - reader->depth) return SN_FULL;
  return sn_memory_grow(reader->memory, (void **)&reader->frames, &reader->frame_capacity, reader->depth + more,
                        sizeof(*reader->frames));
}

static sn_status add_inlined(sn_reader *reader, uint32_t position) {
  const sn_stack_ref ref = reader->inlined[position];
  const sn_status status = make_room(reader, ref.length);
  if (status != SN_OK) return status;
  memcpy(reader->frames + reader->depth, reader->inlined_frames + ref.offset, ref.length * sizeof(*reader->frames));
  reader->depth += ref.length;
  return SN_OK;
}

static sn_status add_location(sn_reader *reader, uint64_t id) {
  const uint32_t location = sn_id_map_get(&reader->locations, id);
  if (SN_UNLIKELY(location == SN_NO_ID)) {
    return sn_reader_fail(reader, SN_MALFORMED, "sample with unknown location %llu", (unsigned long long)id);
  }
  if (SN_UNLIKELY(location & SN_READER_INLINED)) return add_inlined(reader, location & ~SN_READER_INLINED);
  const sn_status status = make_room(reader, 1);
  if (status == SN_OK) reader->frames[reader->depth++] = location;
  return status;
}

/* The common case of packed ids, without a check of room for each: no more frames than bytes, as long as none is
 * inlined. Stops before the first id that is anything but plain. */
static sn_status add_plain_locations(sn_reader *reader, sn_proto_span *ids) {
  const size_t most = sn_proto_left(ids);
  if (most == 0 || most > UINT32_MAX / 2) return SN_OK;
  const uint32_t first = reader->depth;
  const sn_status status = make_room(reader, (uint32_t)most);
  if (status != SN_OK) return status;
  uint32_t *at = reader->frames + first;
  while (ids->at < ids->end) {
    sn_proto_span rest = *ids;
    uint64_t id;
    if (!sn_proto_varint(&rest, &id)) break;
    const uint32_t location = sn_id_map_get(&reader->locations, id);
    if (SN_UNLIKELY(location & SN_READER_INLINED)) break; /* SN_NO_ID has the bit too */
    *at++ = location;
    *ids = rest;
  }
  reader->depth = (uint32_t)(at - reader->frames);
  reader->frames_left += most - (reader->depth - first); /* what was claimed and not used */
  return SN_OK;
}

static sn_status add_value(sn_reader *reader, uint64_t value) {
  if (reader->value_count >= reader->profile->type_count) {
    return sn_reader_fail(reader, SN_MALFORMED, "sample with more values than there are types");
  }
  reader->values[reader->value_count++] = (int64_t)value;
  return SN_OK;
}

/* A repeated number may come packed or one by one. */
static sn_status read_repeated(sn_reader *reader, const sn_proto_field *field,
                               sn_status (*add)(sn_reader *, uint64_t)) {
  if (field->wire_type == SN_PROTO_VARINT) return add(reader, field->value);
  if (field->wire_type != SN_PROTO_BYTES) return sn_reader_fail(reader, SN_MALFORMED, "wrong wire type in a sample");
  sn_proto_span rest = field->bytes;
  if (add == add_location) {
    const sn_status status = add_plain_locations(reader, &rest);
    if (status != SN_OK) return status;
  }
  while (rest.at < rest.end) {
    uint64_t value;
    if (!sn_proto_varint(&rest, &value)) return sn_reader_fail(reader, SN_MALFORMED, "broken varint in a sample");
    const sn_status status = add(reader, value);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static sn_status read_label_field(sn_reader *reader, const sn_proto_field *field, sn_label *label) {
  switch (field->number) {
    case SN_LABEL_KEY:
      return sn_reader_string(reader, field, &label->key);
    case SN_LABEL_STR:
      return sn_reader_string(reader, field, &label->str);
    case SN_LABEL_NUM:
      return sn_reader_int(reader, field, &label->num);
    case SN_LABEL_NUM_UNIT:
      return sn_reader_string(reader, field, &label->num_unit);
    default:
      return SN_OK;
  }
}

static sn_status read_label(sn_reader *reader, const sn_proto_field *message) {
  sn_label label = {0};
  sn_status status = sn_reader_message(reader, message);
  if (status != SN_OK) return status;
  sn_proto_span rest = message->bytes;
  while (rest.at < rest.end) {
    sn_proto_field field;
    status = sn_reader_next(reader, &rest, &field);
    if (status == SN_OK) status = read_label_field(reader, &field, &label);
    if (status != SN_OK) return status;
  }
  if (label.str != 0) label.num = label.num_unit = 0; /* a label is a text or a number */
  if (reader->label_count >= SN_LABEL_SET_MAX)
    return sn_reader_fail(reader, SN_TOO_LARGE, "sample with too many labels");
  reader->labels[reader->label_count++] = label;
  return SN_OK;
}

static sn_status read_field(sn_reader *reader, const sn_proto_field *field) {
  switch (field->number) {
    case SN_SAMPLE_LOCATION_ID:
      return read_repeated(reader, field, add_location);
    case SN_SAMPLE_VALUE:
      return read_repeated(reader, field, add_value);
    case SN_SAMPLE_LABEL:
      return read_label(reader, field);
    default:
      return SN_OK;
  }
}

static sn_status add_sample(sn_reader *reader) {
  uint32_t stack, labels;
  sn_profile *profile = reader->profile;
  if (profile->type_count == 0) return sn_reader_fail(reader, SN_MALFORMED, "samples, but no sample types");
  if (reader->value_count != profile->type_count) {
    return sn_reader_fail(reader, SN_MALFORMED, "sample with %u values for %u types", reader->value_count,
                          profile->type_count);
  }
  sn_status status = sn_stack_table_intern(&profile->stacks, reader->frames, reader->depth, &stack);
  if (status == SN_OK) status = sn_profile_labels(profile, reader->labels, reader->label_count, &labels);
  return status != SN_OK ? status : sn_profile_add_sample(profile, stack, labels, reader->values);
}

sn_status sn_reader_sample(sn_reader *reader, sn_proto_span message) {
  reader->depth = reader->value_count = reader->label_count = 0;
  while (message.at < message.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &message, &field);
    if (status == SN_OK) status = read_field(reader, &field);
    if (status != SN_OK) return status;
  }
  return add_sample(reader);
}
