/* otlp_writer: see otlp_writer.h. Called by the binding, on the thread that reports, without the GVL; only reads the
 * profile, so no locks.
 *
 * First all samples are gone through and what they use gets its index (otlp_tables.h); then the Profiles are written,
 * and the dictionary behind them. */
#include "otlp_writer.h"

#include <string.h>

#include "otlp_fields.h"
#include "otlp_tables.h"
#include "proto_writer.h"

static const char UNNAMED[] = "(unnamed)";

typedef struct writer {
  const sn_profile *profile;
  const sn_otlp_options *options;
  sn_sink *sink;
  sn_otlp_tables tables;
  sn_value_type types[SN_PROFILE_MAX_TYPES]; /* string indices */
  bool used[SN_PROFILE_MAX_TYPES];           /* has a value that is not zero */
  uint32_t unnamed;                          /* string index of UNNAMED; 0: not used */
} writer;

static int64_t value_of(const writer *w, uint32_t sample, uint32_t type) {
  return w->profile->values[(size_t)sample * w->profile->type_count + type];
}

/* What is used -------------------------------------------------------------- */

static sn_status use_sample(writer *w, uint32_t sample) {
  bool any = false;
  for (uint32_t i = 0; i < w->profile->type_count; i++) {
    if (value_of(w, sample, i) == 0) continue;
    any = w->used[i] = true;
  }
  if (!any) return SN_OK;
  const sn_status status = sn_otlp_use_stack(&w->tables, w->profile->samples[sample].stack);
  return status == SN_OK ? sn_otlp_use_labels(&w->tables, w->profile->samples[sample].labels) : status;
}

static sn_status use_types(writer *w) {
  bool any = false;
  for (uint32_t i = 0; i < w->profile->type_count; i++) {
    if (!w->used[i]) continue;
    any = true;
    if (w->profile->types[i].type == 0) return SN_INVALID;
    sn_status status = sn_otlp_use_string(&w->tables, w->profile->types[i].type, &w->types[i].type);
    if (status == SN_OK) status = sn_otlp_use_string(&w->tables, w->profile->types[i].unit, &w->types[i].unit);
    if (status != SN_OK) return status;
  }
  return any ? sn_otlp_use_comments(&w->tables) : SN_OK;
}

/* A function needs a name or a file. */
static sn_status use_unnamed(writer *w) {
  for (uint32_t i = 0; i < w->tables.functions.count; i++) {
    const sn_function *function = &w->profile->functions[w->tables.functions.order[i]];
    if (function->name != 0 || function->filename != 0) continue;
    return sn_string_table_intern(&w->tables.strings, UNNAMED, sizeof(UNNAMED) - 1, &w->unnamed);
  }
  return SN_OK;
}

static sn_status use_all(writer *w) {
  sn_status status = SN_OK;
  for (uint32_t i = 0; i < w->profile->sample_count && status == SN_OK; i++) status = use_sample(w, i);
  if (status == SN_OK) status = use_types(w);
  return status == SN_OK ? use_unnamed(w) : status;
}

/* Profiles ------------------------------------------------------------------- */

static void write_value_type(writer *w, uint32_t field, sn_value_type type) {
  const size_t begin = sn_proto_begin(w->sink, field);
  sn_proto_uint(w->sink, SN_OTLP_VALUE_TYPE_TYPE, type.type);
  sn_proto_uint(w->sink, SN_OTLP_VALUE_TYPE_UNIT, type.unit);
  sn_proto_end(w->sink, begin);
}

static void write_sample(writer *w, uint32_t id, int64_t value) {
  const sn_sample *sample = &w->profile->samples[id];
  const sn_otlp_labels *labels = &w->tables.labels[sample->labels];
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_PROFILE_SAMPLES);
  sn_proto_uint(w->sink, SN_OTLP_SAMPLE_STACK_INDEX, w->tables.stacks.index[sample->stack]);
  if (labels->length > 0) {
    sn_proto_packed_ids(w->sink, SN_OTLP_SAMPLE_ATTRIBUTE_INDICES, w->tables.attribute_refs + labels->offset,
                        labels->length, 0);
  }
  sn_proto_uint(w->sink, SN_OTLP_SAMPLE_LINK_INDEX, labels->link);
  sn_proto_packed_ints(w->sink, SN_OTLP_SAMPLE_VALUES, &value, 1);
  sn_proto_end(w->sink, begin);
}

static bool in_nanoseconds(const writer *w, uint32_t type) {
  static const char NANOSECONDS[] = "nanoseconds";
  size_t length;
  const char *unit = sn_string_table_get(&w->profile->strings, w->profile->types[type].unit, &length);
  return length == sizeof(NANOSECONDS) - 1 && memcmp(unit, NANOSECONDS, length) == 0;
}

static void write_profile(writer *w, uint32_t type) {
  const sn_profile *profile = w->profile;
  uint8_t profile_id[16];
  memcpy(profile_id, w->options->profile_id, sizeof(profile_id));
  profile_id[15] = (uint8_t)(profile_id[15] ^ type);
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_SCOPE_PROFILES_PROFILES);
  write_value_type(w, SN_OTLP_PROFILE_SAMPLE_TYPE, w->types[type]);
  for (uint32_t i = 0; i < profile->sample_count && w->sink->status == SN_OK; i++) {
    const int64_t value = value_of(w, i, type);
    if (value != 0) write_sample(w, i, value);
  }
  sn_proto_fixed64(w->sink, SN_OTLP_PROFILE_TIME_UNIX_NANO, (uint64_t)profile->time_nanos);
  sn_proto_int(w->sink, SN_OTLP_PROFILE_DURATION_NANO, profile->duration_nanos);
  write_value_type(w, SN_OTLP_PROFILE_PERIOD_TYPE, w->types[type]);
  const int64_t period = in_nanoseconds(w, type) && profile->period > 0 ? profile->period : 1;
  sn_proto_int(w->sink, SN_OTLP_PROFILE_PERIOD, period);
  sn_proto_bytes(w->sink, SN_OTLP_PROFILE_PROFILE_ID, profile_id, sizeof(profile_id));
  if (w->tables.comments != 0) {
    sn_proto_packed_ids(w->sink, SN_OTLP_PROFILE_ATTRIBUTE_INDICES, &w->tables.comments, 1, 0);
  }
  sn_proto_end(w->sink, begin);
}

static void write_any_text(writer *w, uint32_t field, const char *text, size_t length) {
  const size_t begin = sn_proto_begin(w->sink, field);
  sn_proto_bytes(w->sink, SN_OTLP_ANY_VALUE_STRING, text, length);
  sn_proto_end(w->sink, begin);
}

/* In a oneof a zero is written too, else nothing would be set. */
static void write_any_int(writer *w, uint32_t field, int64_t number) {
  const size_t begin = sn_proto_begin(w->sink, field);
  sn_proto_uint_always(w->sink, SN_OTLP_ANY_VALUE_INT, (uint64_t)number);
  sn_proto_end(w->sink, begin);
}

static void write_resource(writer *w) {
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_RESOURCE_PROFILES_RESOURCE);
  for (uint32_t i = 0; i < w->options->resource_count; i++) {
    const sn_otlp_attribute *attribute = &w->options->resource[i];
    const size_t pair = sn_proto_begin(w->sink, SN_OTLP_RESOURCE_ATTRIBUTES);
    sn_proto_bytes(w->sink, SN_OTLP_KEY_VALUE_KEY, attribute->key, strlen(attribute->key));
    if (attribute->text == NULL) {
      write_any_int(w, SN_OTLP_KEY_VALUE_VALUE, attribute->number);
    } else {
      write_any_text(w, SN_OTLP_KEY_VALUE_VALUE, attribute->text, strlen(attribute->text));
    }
    sn_proto_end(w->sink, pair);
  }
  sn_proto_end(w->sink, begin);
}

static void write_scope_profiles(writer *w) {
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_RESOURCE_PROFILES_SCOPE_PROFILES);
  const size_t scope = sn_proto_begin(w->sink, SN_OTLP_SCOPE_PROFILES_SCOPE);
  sn_proto_bytes(w->sink, SN_OTLP_SCOPE_NAME, w->options->scope_name, strlen(w->options->scope_name));
  sn_proto_bytes(w->sink, SN_OTLP_SCOPE_VERSION, w->options->scope_version, strlen(w->options->scope_version));
  sn_proto_end(w->sink, scope);
  for (uint32_t i = 0; i < w->profile->type_count && w->sink->status == SN_OK; i++) {
    if (w->used[i]) write_profile(w, i);
  }
  sn_proto_end(w->sink, begin);
}

/* The dictionary ------------------------------------------------------------- */

static void write_zero(writer *w, uint32_t field) {
  sn_proto_bytes(w->sink, field, "", 0);
}

static void write_location(writer *w, uint32_t id) {
  const sn_location *location = &w->profile->locations[id];
  const uint32_t type = sn_otlp_frame_type(&w->tables, &w->profile->functions[location->function]);
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_DICTIONARY_LOCATION);
  const size_t line = sn_proto_begin(w->sink, SN_OTLP_LOCATION_LINES);
  sn_proto_uint(w->sink, SN_OTLP_LINE_FUNCTION_INDEX, w->tables.functions.index[location->function]);
  sn_proto_int(w->sink, SN_OTLP_LINE_LINE, location->line);
  sn_proto_end(w->sink, line);
  if (type != 0) sn_proto_packed_ids(w->sink, SN_OTLP_LOCATION_ATTRIBUTE_INDICES, &type, 1, 0);
  sn_proto_end(w->sink, begin);
}

static uint32_t string_index(const writer *w, uint32_t id) {
  size_t length;
  const char *bytes = sn_string_table_get(&w->profile->strings, id, &length);
  return sn_string_table_find(&w->tables.strings, bytes, length);
}

static void write_function(writer *w, uint32_t id) {
  const sn_function *function = &w->profile->functions[id];
  const bool unnamed = function->name == 0 && function->filename == 0;
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_DICTIONARY_FUNCTION);
  sn_proto_uint(w->sink, SN_OTLP_FUNCTION_NAME, unnamed ? w->unnamed : string_index(w, function->name));
  sn_proto_uint(w->sink, SN_OTLP_FUNCTION_FILENAME, string_index(w, function->filename));
  sn_proto_int(w->sink, SN_OTLP_FUNCTION_START_LINE, function->start_line);
  sn_proto_end(w->sink, begin);
}

static void write_comments(writer *w) {
  const size_t value = sn_proto_begin(w->sink, SN_OTLP_KEY_VALUE_AND_UNIT_VALUE);
  const size_t array = sn_proto_begin(w->sink, SN_OTLP_ANY_VALUE_ARRAY);
  for (uint32_t i = 0; i < w->profile->comment_count; i++) {
    size_t length;
    const char *bytes = sn_string_table_get(&w->profile->strings, w->profile->comments[i], &length);
    write_any_text(w, SN_OTLP_ARRAY_VALUES, bytes, length);
  }
  sn_proto_end(w->sink, array);
  sn_proto_end(w->sink, value);
}

static void write_attribute(writer *w, const sn_otlp_value *value) {
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_DICTIONARY_ATTRIBUTE);
  sn_proto_uint(w->sink, SN_OTLP_KEY_VALUE_AND_UNIT_KEY, value->key);
  if (value->kind == SN_OTLP_TEXT) {
    write_any_text(w, SN_OTLP_KEY_VALUE_AND_UNIT_VALUE, value->text, value->length);
  } else if (value->kind == SN_OTLP_INT) {
    write_any_int(w, SN_OTLP_KEY_VALUE_AND_UNIT_VALUE, value->number);
  } else {
    write_comments(w);
  }
  sn_proto_uint(w->sink, SN_OTLP_KEY_VALUE_AND_UNIT_UNIT, value->unit);
  sn_proto_end(w->sink, begin);
}

static void write_link(writer *w, const sn_otlp_link *link) {
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_DICTIONARY_LINK);
  sn_proto_bytes(w->sink, SN_OTLP_LINK_TRACE_ID, link->trace_id, sizeof(link->trace_id));
  sn_proto_bytes(w->sink, SN_OTLP_LINK_SPAN_ID, link->span_id, sizeof(link->span_id));
  sn_proto_end(w->sink, begin);
}

static void write_stack(writer *w, uint32_t id) {
  uint32_t depth;
  const uint32_t *locations = sn_stack_table_get(&w->profile->stacks, id, &depth);
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_DICTIONARY_STACK);
  const size_t list = sn_proto_begin(w->sink, SN_OTLP_STACK_LOCATION_INDICES);
  for (uint32_t i = 0; i < depth; i++) {
    uint8_t *room = sn_sink_reserve(w->sink, SN_VARINT_MAX);
    if (room == NULL) return;
    w->sink->length += (size_t)(sn_proto_put_varint(room, w->tables.locations.index[locations[i]]) - room);
  }
  sn_proto_end(w->sink, list);
  sn_proto_end(w->sink, begin);
}

static void write_dictionary(writer *w) {
  const sn_otlp_tables *t = &w->tables;
  const size_t begin = sn_proto_begin(w->sink, SN_OTLP_REQUEST_DICTIONARY);
  write_zero(w, SN_OTLP_DICTIONARY_MAPPING);
  write_zero(w, SN_OTLP_DICTIONARY_LOCATION);
  for (uint32_t i = 0; i < t->locations.count; i++) write_location(w, t->locations.order[i]);
  write_zero(w, SN_OTLP_DICTIONARY_FUNCTION);
  for (uint32_t i = 0; i < t->functions.count; i++) write_function(w, t->functions.order[i]);
  write_zero(w, SN_OTLP_DICTIONARY_LINK);
  for (uint32_t i = 0; i < t->link_count; i++) write_link(w, &t->links[i]);
  for (uint32_t i = 0; i < t->strings.count; i++) {
    size_t length;
    const char *bytes = sn_string_table_get(&t->strings, i, &length);
    sn_proto_bytes(w->sink, SN_OTLP_DICTIONARY_STRING, bytes, length);
  }
  write_zero(w, SN_OTLP_DICTIONARY_ATTRIBUTE);
  for (uint32_t i = 0; i < t->attribute_count; i++) write_attribute(w, &t->attributes[i]);
  write_zero(w, SN_OTLP_DICTIONARY_STACK);
  for (uint32_t i = 0; i < t->stacks.count; i++) write_stack(w, t->stacks.order[i]);
  sn_proto_end(w->sink, begin);
}

sn_status sn_otlp_write(const sn_profile *profile, const sn_otlp_options *options, sn_sink *sink) {
  writer w = {.profile = profile, .options = options, .sink = sink};
  sn_status status = sn_otlp_tables_init(&w.tables, profile, sink->memory);
  if (status == SN_OK) status = use_all(&w);
  if (status == SN_OK) {
    const size_t begin = sn_proto_begin(sink, SN_OTLP_REQUEST_RESOURCE_PROFILES);
    write_resource(&w);
    write_scope_profiles(&w);
    sn_proto_end(sink, begin);
    write_dictionary(&w);
    status = sink->status;
  }
  sn_otlp_tables_destroy(&w.tables);
  return status;
}
