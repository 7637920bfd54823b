/* pprof_reader: see pprof_reader.h. Called by the merge command, the viewer and the tests, on one thread, with or
 * without the GVL; the input is only read and the profile is the caller's, so no locks.
 *
 * Fields may come in any order, so the top level is walked once for each kind of thing, in the order in which things
 * refer to each other: strings, types, mappings, functions, locations, samples. Walking it means jumping from length to
 * length, and only from the first to the last thing of the kind: usually they stand together.
 */
#include "pprof_reader.h"

#include <stdarg.h>
#include <stdio.h>

#include "pprof_fields.h"
#include "pprof_reader_state.h"
#include "proto_writer.h"

/* Frames that all samples may have together, by bytes of input: far more than inlining gives. */
enum { FRAMES_PER_BYTE = 32, FRAMES_AT_LEAST = 1 << 20 };

/* What is shared with the reader of samples ----------------------------------- */

sn_status sn_reader_fail(sn_reader *reader, sn_status status, const char *format, ...) {
  if (reader->error == NULL || reader->error_size == 0) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reader->error, reader->error_size, format, arguments);
  va_end(arguments);
  return status;
}

sn_status sn_reader_next(sn_reader *reader, sn_proto_span *rest, sn_proto_field *field) {
  if (SN_LIKELY(sn_proto_next(rest, field))) return SN_OK;
  return sn_reader_fail(reader, SN_MALFORMED, "broken field at byte %zu", (size_t)(rest->at - reader->input.at));
}

sn_status sn_reader_uint(sn_reader *reader, const sn_proto_field *field, uint64_t *value) {
  *value = field->value;
  if (SN_LIKELY(field->wire_type == SN_PROTO_VARINT)) return SN_OK;
  return sn_reader_fail(reader, SN_MALFORMED, "wrong wire type in field %u", field->number);
}

sn_status sn_reader_int(sn_reader *reader, const sn_proto_field *field, int64_t *value) {
  uint64_t bits;
  const sn_status status = sn_reader_uint(reader, field, &bits);
  *value = (int64_t)bits;
  return status;
}

static sn_status string_at(sn_reader *reader, uint64_t index, uint32_t *id) {
  if (index >= reader->string_count) {
    return sn_reader_fail(reader, SN_MALFORMED, "string index %llu out of range", (unsigned long long)index);
  }
  *id = reader->strings[index];
  return SN_OK;
}

sn_status sn_reader_string(sn_reader *reader, const sn_proto_field *field, uint32_t *id) {
  uint64_t index;
  const sn_status status = sn_reader_uint(reader, field, &index);
  return status != SN_OK ? status : string_at(reader, index, id);
}

sn_status sn_reader_message(sn_reader *reader, const sn_proto_field *field) {
  if (SN_LIKELY(field->wire_type == SN_PROTO_BYTES)) return SN_OK;
  return sn_reader_fail(reader, SN_MALFORMED, "wrong wire type in field %u", field->number);
}

/* Walks ----------------------------------------------------------------------- */

typedef sn_status (*message_handler)(sn_reader *, sn_proto_span);

static sn_status for_each(sn_reader *reader, uint32_t number, message_handler handle) {
  sn_proto_span rest = reader->ranges[number];
  while (rest.at < rest.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &rest, &field);
    if (status == SN_OK && field.number == number) {
      status = sn_reader_message(reader, &field);
      if (status == SN_OK) status = handle(reader, field.bytes);
    }
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

/* Where each kind of thing begins and ends, and how many there are, for the maps. Also the first look at every field of
 * the top level. */
static sn_status survey(sn_reader *reader) {
  uint32_t counts[SN_READER_KINDS] = {0};
  sn_proto_span rest = reader->input;
  while (rest.at < rest.end) {
    sn_proto_field field;
    const uint8_t *start = rest.at;
    const sn_status status = sn_reader_next(reader, &rest, &field);
    if (status != SN_OK) return status;
    const uint32_t kind = field.number < SN_READER_KINDS ? field.number : 0;
    if (counts[kind]++ == 0) reader->ranges[kind].at = start;
    reader->ranges[kind].end = rest.at;
    if (counts[kind] >= SN_READER_INLINED) return SN_TOO_LARGE;
  }
  sn_status status = sn_id_map_expect(&reader->mappings, counts[SN_PROFILE_MAPPING]);
  if (status == SN_OK) status = sn_id_map_expect(&reader->functions, counts[SN_PROFILE_FUNCTION]);
  return status != SN_OK ? status : sn_id_map_expect(&reader->locations, counts[SN_PROFILE_LOCATION]);
}

/* Strings --------------------------------------------------------------------- */

static sn_status read_text(sn_reader *reader, sn_proto_span bytes) {
  const size_t length = sn_proto_left(&bytes);
  if (reader->string_count == 0 && length != 0) {
    return sn_reader_fail(reader, SN_MALFORMED, "the first string is not empty");
  }
  if (reader->string_count == UINT32_MAX) return SN_TOO_LARGE;
  sn_status status = sn_memory_grow(reader->memory, (void **)&reader->strings, &reader->string_capacity,
                                    reader->string_count + 1, sizeof(*reader->strings));
  if (status != SN_OK) return status;
  status = sn_profile_string(reader->profile, (const char *)bytes.at, length, &reader->strings[reader->string_count]);
  if (status == SN_OK) reader->string_count++;
  return status;
}

static sn_status read_strings(sn_reader *reader) {
  const sn_status status = for_each(reader, SN_PROFILE_STRING_TABLE, read_text);
  if (status != SN_OK || reader->string_count > 0) return status;
  return sn_reader_fail(reader, SN_MALFORMED, "no strings");
}

/* Types and single values ----------------------------------------------------- */

static sn_status read_value_type(sn_reader *reader, sn_proto_span rest, sn_value_type *type) {
  *type = (sn_value_type){0};
  while (rest.at < rest.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &rest, &field);
    if (status != SN_OK) return status;
    if (field.number == SN_VALUE_TYPE_TYPE) status = sn_reader_string(reader, &field, &type->type);
    if (field.number == SN_VALUE_TYPE_UNIT) status = sn_reader_string(reader, &field, &type->unit);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static sn_status read_sample_type(sn_reader *reader, sn_proto_span message) {
  sn_value_type type;
  uint32_t position;
  const sn_status status = read_value_type(reader, message, &type);
  if (status != SN_OK) return status;
  if (reader->profile->type_count >= SN_PROFILE_MAX_TYPES) {
    return sn_reader_fail(reader, SN_TOO_LARGE, "more than %d sample types", SN_PROFILE_MAX_TYPES);
  }
  return sn_profile_add_type_ids(reader->profile, type, &position);
}

static sn_status read_period_type(sn_reader *reader, const sn_proto_field *field) {
  const sn_status status = sn_reader_message(reader, field);
  return status != SN_OK ? status : read_value_type(reader, field->bytes, &reader->profile->period_type);
}

static sn_status add_comment(sn_reader *reader, uint64_t index) {
  uint32_t id = 0;
  size_t length;
  const sn_status status = string_at(reader, index, &id);
  if (status != SN_OK) return status;
  const char *bytes = sn_string_table_get(&reader->profile->strings, id, &length);
  if (length == 0) return SN_OK;
  if (reader->profile->comment_count >= 10000) return sn_reader_fail(reader, SN_TOO_LARGE, "too many comments");
  return sn_profile_add_comment(reader->profile, bytes, length);
}

static sn_status read_comments(sn_reader *reader, const sn_proto_field *field) {
  if (field->wire_type == SN_PROTO_VARINT) return add_comment(reader, field->value);
  sn_status status = sn_reader_message(reader, field);
  sn_proto_span rest = field->bytes;
  while (status == SN_OK && rest.at < rest.end) {
    uint64_t index;
    if (!sn_proto_varint(&rest, &index)) return sn_reader_fail(reader, SN_MALFORMED, "broken varint in comments");
    status = add_comment(reader, index);
  }
  return status;
}

/* The time comes once: twice means that two profiles were written one behind the other. */
static sn_status read_time(sn_reader *reader, const sn_proto_field *field) {
  if (reader->profile->time_nanos != 0) return sn_reader_fail(reader, SN_MALFORMED, "concatenated profiles");
  return sn_reader_int(reader, field, &reader->profile->time_nanos);
}

static sn_status read_default_type(sn_reader *reader, const sn_proto_field *field) {
  uint32_t id = 0; /* for compilers that do not see that a status of SN_OK comes with an id */
  const sn_status status = sn_reader_string(reader, field, &id);
  if (status != SN_OK) return status;
  for (uint32_t i = 0; i < reader->profile->type_count; i++) {
    if (reader->profile->types[i].type == id) reader->profile->default_type = id;
  }
  return SN_OK;
}

static sn_status read_single(sn_reader *reader, const sn_proto_field *field) {
  uint32_t ignored;
  switch (field->number) {
    case SN_PROFILE_TIME_NANOS:
      return read_time(reader, field);
    case SN_PROFILE_DURATION_NANOS:
      return sn_reader_int(reader, field, &reader->profile->duration_nanos);
    case SN_PROFILE_PERIOD_TYPE:
      return read_period_type(reader, field);
    case SN_PROFILE_PERIOD:
      return sn_reader_int(reader, field, &reader->profile->period);
    case SN_PROFILE_COMMENT:
      return read_comments(reader, field);
    case SN_PROFILE_DEFAULT_SAMPLE_TYPE:
      return read_default_type(reader, field);
    case SN_PROFILE_DROP_FRAMES: /* hints for viewers: checked, not kept */
    case SN_PROFILE_KEEP_FRAMES:
    case SN_PROFILE_DOC_URL:
      return sn_reader_string(reader, field, &ignored);
    default:
      return SN_OK;
  }
}

static sn_status read_singles(sn_reader *reader) {
  sn_proto_span rest = reader->ranges[0];
  while (rest.at < rest.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &rest, &field);
    if (status == SN_OK) status = read_single(reader, &field);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

/* Mappings and functions ------------------------------------------------------ */

static sn_status add_id(sn_reader *reader, sn_id_map *map, const char *kind, uint64_t id, uint32_t value) {
  if (id == 0) return sn_reader_fail(reader, SN_MALFORMED, "%s with id 0", kind);
  const sn_status status = sn_id_map_add(map, id, value);
  if (status != SN_INVALID) return status;
  return sn_reader_fail(reader, SN_MALFORMED, "two %ss with id %llu", kind, (unsigned long long)id);
}

static sn_status read_mapping(sn_reader *reader, sn_proto_span rest) {
  uint64_t id = 0;
  uint32_t ignored;
  while (rest.at < rest.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &rest, &field);
    if (status != SN_OK) return status;
    if (field.number == SN_MAPPING_ID) status = sn_reader_uint(reader, &field, &id);
    if (field.number == SN_MAPPING_FILENAME || field.number == SN_MAPPING_BUILD_ID) {
      status = sn_reader_string(reader, &field, &ignored);
    }
    if (status != SN_OK) return status;
  }
  return add_id(reader, &reader->mappings, "mapping", id, 0);
}

static sn_status read_function_field(sn_reader *reader, const sn_proto_field *field, uint64_t *id,
                                     sn_function *function) {
  uint32_t system_name;
  switch (field->number) {
    case SN_FUNCTION_ID:
      return sn_reader_uint(reader, field, id);
    case SN_FUNCTION_NAME:
      return sn_reader_string(reader, field, &function->name);
    case SN_FUNCTION_SYSTEM_NAME:
      return sn_reader_string(reader, field, &system_name);
    case SN_FUNCTION_FILENAME:
      return sn_reader_string(reader, field, &function->filename);
    case SN_FUNCTION_START_LINE:
      return sn_reader_int(reader, field, &function->start_line);
    default:
      return SN_OK;
  }
}

static sn_status read_function(sn_reader *reader, sn_proto_span rest) {
  sn_function function = {0};
  uint64_t id = 0;
  uint32_t added;
  while (rest.at < rest.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &rest, &field);
    if (status == SN_OK) status = read_function_field(reader, &field, &id, &function);
    if (status != SN_OK) return status;
  }
  const sn_status status = sn_profile_function(reader->profile, function, &added);
  return status != SN_OK ? status : add_id(reader, &reader->functions, "function", id, added);
}

/* Locations ------------------------------------------------------------------- */

static sn_status read_line(sn_reader *reader, sn_proto_span rest, uint32_t *location) {
  sn_location line = {0};
  uint64_t function = 0;
  while (rest.at < rest.end) {
    sn_proto_field field;
    sn_status status = sn_reader_next(reader, &rest, &field);
    if (status != SN_OK) return status;
    if (field.number == SN_LINE_FUNCTION_ID) status = sn_reader_uint(reader, &field, &function);
    if (field.number == SN_LINE_LINE) status = sn_reader_int(reader, &field, &line.line);
    if (status != SN_OK) return status;
  }
  line.function = sn_id_map_get(&reader->functions, function);
  if (line.function == SN_NO_ID) {
    return sn_reader_fail(reader, SN_MALFORMED, "line with unknown function %llu", (unsigned long long)function);
  }
  return sn_profile_location(reader->profile, line, location);
}

/* What has an address only is shown by it. */
static sn_status add_unnamed(sn_reader *reader, uint64_t address, uint32_t *location) {
  char name[32];
  const int length = snprintf(name, sizeof(name), "0x%llx", (unsigned long long)address);
  sn_function function = {0};
  sn_location line = {0};
  sn_status status = sn_profile_string(reader->profile, name, (size_t)length, &function.name);
  if (status == SN_OK) status = sn_profile_function(reader->profile, function, &line.function);
  return status != SN_OK ? status : sn_profile_location(reader->profile, line, location);
}

static sn_status add_inlined_frame(sn_reader *reader, uint32_t location) {
  if (reader->inlined_frame_count == UINT32_MAX) return SN_TOO_LARGE;
  const sn_status status =
      sn_memory_grow(reader->memory, (void **)&reader->inlined_frames, &reader->inlined_frame_capacity,
                     reader->inlined_frame_count + 1, sizeof(*reader->inlined_frames));
  if (status == SN_OK) reader->inlined_frames[reader->inlined_frame_count++] = location;
  return status;
}

/* The frames from `first` on become one inlined range; its number goes to *entry. */
static sn_status add_inlined_range(sn_reader *reader, uint32_t first, uint32_t *entry) {
  if (reader->inlined_count >= SN_READER_INLINED - 1) return SN_TOO_LARGE;
  const sn_status status = sn_memory_grow(reader->memory, (void **)&reader->inlined, &reader->inlined_capacity,
                                          reader->inlined_count + 1, sizeof(*reader->inlined));
  if (status != SN_OK) return status;
  reader->inlined[reader->inlined_count] =
      (sn_stack_ref){.offset = first, .length = reader->inlined_frame_count - first};
  *entry = SN_READER_INLINED | reader->inlined_count++;
  return SN_OK;
}

static sn_status read_location_field(sn_reader *reader, const sn_proto_field *field, uint64_t *id, uint64_t *address) {
  uint64_t mapping;
  uint32_t location;
  switch (field->number) {
    case SN_LOCATION_ID:
      return sn_reader_uint(reader, field, id);
    case SN_LOCATION_MAPPING_ID:
      return sn_reader_uint(reader, field, &mapping); /* an unknown one is no error */
    case SN_LOCATION_ADDRESS:
      return sn_reader_uint(reader, field, address);
    case SN_LOCATION_LINE:
      break;
    default:
      return SN_OK;
  }
  sn_status status = sn_reader_message(reader, field);
  if (status == SN_OK) status = read_line(reader, field->bytes, &location);
  return status != SN_OK ? status : add_inlined_frame(reader, location);
}

static sn_status read_location(sn_reader *reader, sn_proto_span rest) {
  const uint32_t first = reader->inlined_frame_count;
  uint64_t id = 0, address = 0;
  uint32_t entry;
  sn_status status = SN_OK;
  while (rest.at < rest.end) {
    sn_proto_field field;
    status = sn_reader_next(reader, &rest, &field);
    if (status == SN_OK) status = read_location_field(reader, &field, &id, &address);
    if (status != SN_OK) return status;
  }
  const uint32_t lines = reader->inlined_frame_count - first;
  if (lines == 0) status = add_unnamed(reader, address, &entry);
  if (lines == 1) entry = reader->inlined_frames[--reader->inlined_frame_count];
  if (lines > 1) status = add_inlined_range(reader, first, &entry);
  if (status != SN_OK) return status;
  if (lines <= 1 && entry >= SN_READER_INLINED) return SN_TOO_LARGE;
  return add_id(reader, &reader->locations, "location", id, entry);
}

/* All ------------------------------------------------------------------------- */

static sn_status read_all(sn_reader *reader) {
  sn_status status = survey(reader);
  if (status == SN_OK) status = read_strings(reader);
  if (status == SN_OK) status = for_each(reader, SN_PROFILE_SAMPLE_TYPE, read_sample_type);
  if (status == SN_OK) status = read_singles(reader);
  if (status == SN_OK) status = for_each(reader, SN_PROFILE_MAPPING, read_mapping);
  if (status == SN_OK) status = for_each(reader, SN_PROFILE_FUNCTION, read_function);
  if (status == SN_OK) status = for_each(reader, SN_PROFILE_LOCATION, read_location);
  if (status == SN_OK) status = for_each(reader, SN_PROFILE_SAMPLE, sn_reader_sample);
  return status;
}

static void free_scratch(sn_reader *reader) {
  sn_memory *memory = reader->memory;
  sn_memory_free(memory, reader->strings, reader->string_capacity * sizeof(*reader->strings));
  sn_memory_free(memory, reader->inlined, reader->inlined_capacity * sizeof(*reader->inlined));
  sn_memory_free(memory, reader->inlined_frames, reader->inlined_frame_capacity * sizeof(*reader->inlined_frames));
  sn_memory_free(memory, reader->frames, reader->frame_capacity * sizeof(*reader->frames));
  sn_id_map_destroy(&reader->mappings);
  sn_id_map_destroy(&reader->functions);
  sn_id_map_destroy(&reader->locations);
}

sn_status sn_pprof_read(sn_profile *profile, const uint8_t *bytes, size_t length, char *error, size_t error_size) {
  sn_reader reader = {.profile = profile, .memory = &profile->memory, .error = error, .error_size = error_size};
  if (error != NULL && error_size > 0) error[0] = '\0';
  if (length == 0) return sn_reader_fail(&reader, SN_MALFORMED, "empty input");
  reader.input = (sn_proto_span){.at = bytes, .end = bytes + length};
  reader.frames_left = (uint64_t)length * FRAMES_PER_BYTE + FRAMES_AT_LEAST;
  sn_id_map_init(&reader.mappings, reader.memory);
  sn_id_map_init(&reader.functions, reader.memory);
  sn_id_map_init(&reader.locations, reader.memory);
  const sn_status status = read_all(&reader);
  free_scratch(&reader);
  const bool unexplained = status != SN_OK && error != NULL && error_size > 0 && error[0] == '\0';
  return unexplained ? sn_reader_fail(&reader, status, "%s", sn_status_text(status)) : status;
}
