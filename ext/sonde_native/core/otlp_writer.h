/* otlp_writer: a profile as the bytes of OTLP's ExportProfilesServiceRequest (v1development, as of 1.10), not
 * compressed.
 *
 * One Profile for each sample type that has values, all with one dictionary: every table begins with its zero
 * value, holds nothing twice and nothing unused. A Profile's period type is its own type, as receivers name it by that;
 * the period is the profile's where the unit is nanoseconds, else 1. Labels become attributes (texts inline, since
 * receivers ignore string_value_strindex), but:
 *   "thread.id"              a number where the text is one
 *   "trace_id", "span_id"    a link, where both are there (32 and 16 hexadecimal digits, or a number for the span)
 * Comments become the attribute pprof.profile.comment. Frames are marked ruby, or native where their file is "<cfunc>";
 * Sonde's own frames, which have no file, are not marked.
 * Contexts: nogvl, gvl. Nothing is shared.
 */
#ifndef SONDE_CORE_OTLP_WRITER_H
#define SONDE_CORE_OTLP_WRITER_H

#include "profile.h"
#include "sink.h"

typedef struct sn_otlp_attribute {
  const char *key;
  const char *text; /* NULL: the number */
  int64_t number;
} sn_otlp_attribute;

typedef struct sn_otlp_options {
  const sn_otlp_attribute *resource;
  uint32_t resource_count;
  const char *scope_name, *scope_version;
  uint8_t profile_id[16]; /* random; of each Profile after the first, the last byte differs */
} sn_otlp_options;

/* The names of types and labels are those of the profile: see profile_reshape.h. SN_OK, SN_INVALID where a sample type
 * has an empty name, or what the sink answered. */
SN_MUST_USE sn_status sn_otlp_write(const sn_profile *profile, const sn_otlp_options *options, sn_sink *sink);

#endif
