/* profile: a finished profile as text: strings, functions, locations, stacks, label sets, samples.
 *
 * The one model that all writers, the reader, the merge and the views work on. Ids are dense positions in their table;
 * string 0 is "". A sample is (stack, label set) -> one value for each sample type.
 * Threads:  none inside; one owner at a time. Contexts: gvl, nogvl.
 * Memory:   everything is on one account (a copy of the limit given to init), owned by the profile. The tables point to
 * that account, so a profile must not be moved or copied.
 */
#ifndef SONDE_CORE_PROFILE_H
#define SONDE_CORE_PROFILE_H

#include "base.h"
#include "hash_index.h"
#include "label_set.h"
#include "memory.h"
#include "stack_table.h"
#include "status.h"
#include "string_table.h"

typedef struct sn_value_type {
  uint32_t type; /* string ids */
  uint32_t unit;
} sn_value_type;

typedef struct sn_function {
  uint32_t name; /* string ids */
  uint32_t filename;
  int64_t start_line;
} sn_function;

/* One Line; a location of several inlined lines is read as several locations. */
typedef struct sn_location {
  uint32_t function;
  int64_t line;
} sn_location;

typedef struct sn_sample {
  uint32_t stack;
  uint32_t labels; /* label set id; 0 is the empty set */
} sn_sample;

enum { SN_PROFILE_MAX_TYPES = 32 };

typedef struct sn_profile {
  sn_memory memory;
  sn_string_table strings;
  sn_hash_index function_index;
  sn_function *functions;
  uint32_t function_count, function_capacity;
  sn_hash_index location_index;
  sn_location *locations;
  uint32_t location_count, location_capacity;
  sn_stack_table stacks; /* of location ids, leaf first */
  sn_label_sets labels;
  sn_value_type types[SN_PROFILE_MAX_TYPES];
  uint32_t type_count;
  sn_hash_index sample_index;
  sn_sample *samples;
  int64_t *values; /* sample_count x type_count */
  uint32_t sample_count, sample_capacity;
  size_t value_capacity; /* in int64_t */
  uint32_t default_type; /* string id of a type; 0: none */
  sn_value_type period_type;
  int64_t period;
  int64_t time_nanos; /* UTC, start */
  int64_t duration_nanos;
  uint32_t *comments; /* string ids, without duplicates */
  uint32_t comment_count, comment_capacity;
} sn_profile;

SN_MUST_USE sn_status sn_profile_init(sn_profile *profile, size_t memory_limit);
void sn_profile_destroy(sn_profile *profile);

/* All of these find or add; on anything but SN_OK the profile is unchanged and *id untouched. */
SN_MUST_USE sn_status sn_profile_string(sn_profile *profile, const char *bytes, size_t length, uint32_t *id);
SN_MUST_USE sn_status sn_profile_function(sn_profile *profile, sn_function function, uint32_t *id);
SN_MUST_USE sn_status sn_profile_location(sn_profile *profile, sn_location location, uint32_t *id);
SN_MUST_USE sn_status sn_profile_stack(sn_profile *profile, const uint32_t *locations, uint32_t n, uint32_t *id);
/* Labels in any order; of two with one key the last wins. */
SN_MUST_USE sn_status sn_profile_labels(sn_profile *profile, const sn_label *labels, uint32_t n, uint32_t *id);
/* Adds a sample type (only while there are no samples; SN_INVALID otherwise or past the maximum). */
SN_MUST_USE sn_status sn_profile_add_type(sn_profile *profile, const char *type, const char *unit, uint32_t *position);
/* The same with string ids. */
SN_MUST_USE sn_status sn_profile_add_type_ids(sn_profile *profile, sn_value_type type, uint32_t *position);
SN_MUST_USE sn_status sn_profile_add_comment(sn_profile *profile, const char *text, size_t length);
/* Adds `values` (type_count of them) to the sample; saturates instead of overflowing. */
SN_MUST_USE sn_status sn_profile_add_sample(sn_profile *profile, uint32_t stack, uint32_t labels,
                                            const int64_t *values);

/* Position of a sample type by its name, or -1. */
int sn_profile_find_type(const sn_profile *profile, const char *type);

#endif
