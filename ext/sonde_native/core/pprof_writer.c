/* pprof_writer: see pprof_writer.h. Called by the flush and by whoever rewrites a profile, on one thread, with or
 * without the GVL; only reads the profile, so no locks. */
#include "pprof_writer.h"

#include <string.h>

#include "pprof_fields.h"
#include "proto_writer.h"

enum { MAPPING_ID = 1 };

static void write_value_type(sn_sink *sink, uint32_t field, sn_value_type type) {
  const size_t begin = sn_proto_begin(sink, field);
  sn_proto_uint(sink, SN_VALUE_TYPE_TYPE, type.type);
  sn_proto_uint(sink, SN_VALUE_TYPE_UNIT, type.unit);
  sn_proto_end(sink, begin);
}

static void write_label(sn_sink *sink, const sn_label *label) {
  const size_t begin = sn_proto_begin(sink, SN_SAMPLE_LABEL);
  sn_proto_uint(sink, SN_LABEL_KEY, label->key);
  sn_proto_uint(sink, SN_LABEL_STR, label->str);
  if (label->str == 0) {
    sn_proto_int(sink, SN_LABEL_NUM, label->num);
    sn_proto_uint(sink, SN_LABEL_NUM_UNIT, label->num_unit);
  }
  sn_proto_end(sink, begin);
}

static bool all_zero(const int64_t *values, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (values[i] != 0) return false;
  }
  return true;
}

static void write_sample(const sn_profile *profile, sn_sink *sink, uint32_t id) {
  const int64_t *values = profile->values + (size_t)id * profile->type_count;
  if (all_zero(values, profile->type_count)) return;
  uint32_t depth, label_count;
  const uint32_t *stack = sn_stack_table_get(&profile->stacks, profile->samples[id].stack, &depth);
  const sn_label *labels = sn_label_sets_get(&profile->labels, profile->samples[id].labels, &label_count);
  const size_t begin = sn_proto_begin(sink, SN_PROFILE_SAMPLE);
  sn_proto_packed_ids(sink, SN_SAMPLE_LOCATION_ID, stack, depth, 1);
  sn_proto_packed_ints(sink, SN_SAMPLE_VALUE, values, profile->type_count);
  for (uint32_t i = 0; i < label_count; i++) write_label(sink, &labels[i]);
  sn_proto_end(sink, begin);
}

/* With a mapping that says it has everything, viewers show a file name and do not look for symbols. */
static void write_mapping(sn_sink *sink, uint32_t filename) {
  const size_t begin = sn_proto_begin(sink, SN_PROFILE_MAPPING);
  sn_proto_uint(sink, SN_MAPPING_ID, MAPPING_ID);
  sn_proto_uint(sink, SN_MAPPING_FILENAME, filename);
  sn_proto_uint(sink, SN_MAPPING_HAS_FUNCTIONS, true);
  sn_proto_uint(sink, SN_MAPPING_HAS_FILENAMES, true);
  sn_proto_uint(sink, SN_MAPPING_HAS_LINE_NUMBERS, true);
  sn_proto_end(sink, begin);
}

static void write_location(const sn_profile *profile, sn_sink *sink, uint32_t id) {
  const sn_location *location = &profile->locations[id];
  const size_t begin = sn_proto_begin(sink, SN_PROFILE_LOCATION);
  sn_proto_uint(sink, SN_LOCATION_ID, (uint64_t)id + 1);
  sn_proto_uint(sink, SN_LOCATION_MAPPING_ID, MAPPING_ID);
  const size_t line = sn_proto_begin(sink, SN_LOCATION_LINE);
  sn_proto_uint(sink, SN_LINE_FUNCTION_ID, (uint64_t)location->function + 1);
  sn_proto_int(sink, SN_LINE_LINE, location->line);
  sn_proto_end(sink, line);
  sn_proto_end(sink, begin);
}

/* No system_name: where it equals the name, viewers take the name for a mangled one and cut pieces out of it. */
static void write_function(const sn_profile *profile, sn_sink *sink, uint32_t id) {
  const sn_function *function = &profile->functions[id];
  const size_t begin = sn_proto_begin(sink, SN_PROFILE_FUNCTION);
  sn_proto_uint(sink, SN_FUNCTION_ID, (uint64_t)id + 1);
  sn_proto_uint(sink, SN_FUNCTION_NAME, function->name);
  sn_proto_uint(sink, SN_FUNCTION_FILENAME, function->filename);
  sn_proto_int(sink, SN_FUNCTION_START_LINE, function->start_line);
  sn_proto_end(sink, begin);
}

static void write_strings(const sn_profile *profile, sn_sink *sink, const char *extra) {
  for (uint32_t i = 0; i < profile->strings.count; i++) {
    size_t length;
    const char *bytes = sn_string_table_get(&profile->strings, i, &length);
    sn_proto_bytes(sink, SN_PROFILE_STRING_TABLE, bytes, length);
  }
  if (extra != NULL) sn_proto_bytes(sink, SN_PROFILE_STRING_TABLE, extra, strlen(extra));
}

static void write_scalars(const sn_profile *profile, sn_sink *sink) {
  sn_proto_int(sink, SN_PROFILE_TIME_NANOS, profile->time_nanos);
  sn_proto_int(sink, SN_PROFILE_DURATION_NANOS, profile->duration_nanos);
  const bool has_period_type = profile->period_type.type != 0 || profile->period_type.unit != 0;
  if (has_period_type) write_value_type(sink, SN_PROFILE_PERIOD_TYPE, profile->period_type);
  sn_proto_int(sink, SN_PROFILE_PERIOD, profile->period);
  sn_proto_packed_ids(sink, SN_PROFILE_COMMENT, profile->comments, profile->comment_count, 0);
  sn_proto_uint(sink, SN_PROFILE_DEFAULT_SAMPLE_TYPE, profile->default_type);
}

sn_status sn_pprof_write(const sn_profile *profile, const char *mapping_name, sn_sink *sink) {
  /* The profile is only read, so a mapping name that is not among its strings goes behind them. */
  uint32_t mapping = sn_string_table_find(&profile->strings, mapping_name, strlen(mapping_name));
  const bool is_extra = mapping == SN_NO_ID;
  if (is_extra) mapping = profile->strings.count;
  for (uint32_t i = 0; i < profile->type_count; i++) write_value_type(sink, SN_PROFILE_SAMPLE_TYPE, profile->types[i]);
  for (uint32_t i = 0; i < profile->sample_count && sink->status == SN_OK; i++) write_sample(profile, sink, i);
  write_mapping(sink, mapping);
  for (uint32_t i = 0; i < profile->location_count && sink->status == SN_OK; i++) write_location(profile, sink, i);
  for (uint32_t i = 0; i < profile->function_count && sink->status == SN_OK; i++) write_function(profile, sink, i);
  write_strings(profile, sink, is_extra ? mapping_name : NULL);
  write_scalars(profile, sink);
  return sink->status;
}
