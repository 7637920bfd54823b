/* pprof_reader_state: what the two files of the pprof reader share. Not for others. */
#ifndef SONDE_CORE_PPROF_READER_STATE_H
#define SONDE_CORE_PPROF_READER_STATE_H

#include "id_map.h"
#include "pprof_fields.h"
#include "profile.h"
#include "proto_reader.h"

/* In the map of locations: a location of one line is its id in the profile; others have this bit and a position in
 * `inlined`. */
#define SN_READER_INLINED (UINT32_C(1) << 31)

/* Field numbers of the top level that have walks of their own are below this. */
enum { SN_READER_KINDS = SN_PROFILE_STRING_TABLE + 1 };

typedef struct sn_reader {
  sn_profile *profile;
  sn_memory *memory; /* the profile's */
  sn_proto_span input;
  sn_proto_span ranges[SN_READER_KINDS]; /* by field number: from the first to behind the last of them; 0: all others */
  char *error;
  size_t error_size;

  uint32_t *strings; /* index in the file -> id in the profile; owned */
  uint32_t string_count, string_capacity;
  sn_id_map mappings, functions, locations;
  sn_stack_ref *inlined; /* ranges of inlined_frames; owned */
  uint32_t inlined_count, inlined_capacity;
  uint32_t *inlined_frames; /* owned */
  uint32_t inlined_frame_count, inlined_frame_capacity;

  uint32_t *frames; /* of the sample being read; owned */
  uint32_t depth, frame_capacity;
  uint64_t frames_left; /* bound of all samples' frames together */
  uint32_t value_count, label_count;
  int64_t values[SN_PROFILE_MAX_TYPES];
  sn_label labels[SN_LABEL_SET_MAX];
} sn_reader;

/* Notes the reason and returns the status. */
SN_PRINTF(3, 4) sn_status sn_reader_fail(sn_reader *reader, sn_status status, const char *format, ...);
/* The next field of a message; SN_MALFORMED with a reason where it is broken. */
SN_MUST_USE sn_status sn_reader_next(sn_reader *reader, sn_proto_span *rest, sn_proto_field *field);
/* The id in the profile of a string index in the file. */
SN_MUST_USE sn_status sn_reader_string(sn_reader *reader, const sn_proto_field *field, uint32_t *id);
/* The value of a varint field. */
SN_MUST_USE sn_status sn_reader_uint(sn_reader *reader, const sn_proto_field *field, uint64_t *value);
SN_MUST_USE sn_status sn_reader_int(sn_reader *reader, const sn_proto_field *field, int64_t *value);
/* Whether the field is a message. */
SN_MUST_USE sn_status sn_reader_message(sn_reader *reader, const sn_proto_field *field);

/* pprof_sample_reader.c: adds one sample to the profile. */
SN_MUST_USE sn_status sn_reader_sample(sn_reader *reader, sn_proto_span message);

#endif
