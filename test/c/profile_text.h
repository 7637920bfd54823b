/* profile_text: a profile as text that does not depend on the order of its tables, to compare two; and profiles to test
 * with. */
#ifndef SONDE_TEST_PROFILE_TEXT_H
#define SONDE_TEST_PROFILE_TEXT_H

#include "core/profile.h"
#include "harness.h"

typedef struct text_buffer {
  char *bytes;
  size_t length, capacity;
} text_buffer;

SN_PRINTF(2, 3) static inline void put(text_buffer *text, const char *format, ...);

#include <stdarg.h>
static inline void put(text_buffer *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (text->length + (size_t)length + 1 > text->capacity) {
    text->capacity = (text->length + (size_t)length + 1) * 2;
    text->bytes = realloc(text->bytes, text->capacity);
    if (text->bytes == NULL) abort();
  }
  va_start(arguments, format);
  vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->length += (size_t)length;
}

static inline const char *string_of(const sn_profile *profile, uint32_t id) {
  size_t length;
  return sn_string_table_get(&profile->strings, id, &length);
}

static inline int by_key(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Labels are kept in the order of their string ids, which is no property of a profile. */
static inline void put_labels(text_buffer *text, const sn_profile *profile, uint32_t set) {
  uint32_t n;
  const sn_label *labels = sn_label_sets_get(&profile->labels, set, &n);
  char *lines[SN_LABEL_SET_MAX];
  for (uint32_t i = 0; i < n; i++) {
    text_buffer line = {0};
    if (labels[i].str != 0) put(&line, " %s=%s", string_of(profile, labels[i].key), string_of(profile, labels[i].str));
    if (labels[i].str == 0) {
      put(&line, " %s=%" PRId64 "%s", string_of(profile, labels[i].key), labels[i].num,
          string_of(profile, labels[i].num_unit));
    }
    lines[i] = line.bytes;
  }
  if (n > 0) qsort(lines, n, sizeof(*lines), by_key);
  for (uint32_t i = 0; i < n; i++) {
    put(text, "%s", lines[i]);
    free(lines[i]);
  }
}

static inline char *sample_text(const sn_profile *profile, uint32_t id) {
  text_buffer text = {0};
  uint32_t depth;
  const uint32_t *stack = sn_stack_table_get(&profile->stacks, profile->samples[id].stack, &depth);
  for (uint32_t i = 0; i < depth; i++) {
    const sn_location *location = &profile->locations[stack[i]];
    const sn_function *function = &profile->functions[location->function];
    put(&text, "%s %s:%" PRId64 "(%" PRId64 ");", string_of(profile, function->name),
        string_of(profile, function->filename), location->line, function->start_line);
  }
  put_labels(&text, profile, profile->samples[id].labels);
  put(&text, " ->");
  for (uint32_t i = 0; i < profile->type_count; i++) {
    put(&text, " %" PRId64, profile->values[(size_t)id * profile->type_count + i]);
  }
  return text.bytes;
}

static inline bool sample_is_zero(const sn_profile *profile, uint32_t id) {
  for (uint32_t i = 0; i < profile->type_count; i++) {
    if (profile->values[(size_t)id * profile->type_count + i] != 0) return false;
  }
  return true;
}

/* To be freed. Samples without values are left out, as writers do. */
static inline char *profile_text(const sn_profile *profile) {
  text_buffer text = {0};
  for (uint32_t i = 0; i < profile->type_count; i++) {
    put(&text, "%s/%s ", string_of(profile, profile->types[i].type), string_of(profile, profile->types[i].unit));
  }
  put(&text, "default %s period %s/%s %" PRId64 " time %" PRId64 " duration %" PRId64 "\n",
      string_of(profile, profile->default_type), string_of(profile, profile->period_type.type),
      string_of(profile, profile->period_type.unit), profile->period, profile->time_nanos, profile->duration_nanos);
  for (uint32_t i = 0; i < profile->comment_count; i++) put(&text, "# %s\n", string_of(profile, profile->comments[i]));
  char **lines = malloc((profile->sample_count + 1) * sizeof(*lines));
  uint32_t count = 0;
  for (uint32_t i = 0; lines != NULL && i < profile->sample_count; i++) {
    if (!sample_is_zero(profile, i)) lines[count++] = sample_text(profile, i);
  }
  if (count > 0) qsort(lines, count, sizeof(*lines), by_key);
  for (uint32_t i = 0; i < count; i++) {
    put(&text, "%s\n", lines[i]);
    free(lines[i]);
  }
  free(lines);
  return text.bytes;
}

static inline uint32_t intern(sn_profile *profile, const char *text) {
  uint32_t id = SN_NO_ID;
  EXPECT_EQ(sn_profile_string(profile, text, strlen(text), &id), SN_OK);
  return id;
}

static inline uint32_t frame(sn_profile *profile, const char *name, const char *file, int64_t start, int64_t line) {
  uint32_t function = SN_NO_ID, location = SN_NO_ID;
  const sn_function wanted = {.name = intern(profile, name), .filename = intern(profile, file), .start_line = start};
  EXPECT_EQ(sn_profile_function(profile, wanted, &function), SN_OK);
  EXPECT_EQ(sn_profile_location(profile, (sn_location){.function = function, .line = line}, &location), SN_OK);
  return location;
}

static inline void add_type(sn_profile *profile, const char *type, const char *unit) {
  uint32_t position;
  EXPECT_EQ(sn_profile_add_type(profile, type, unit, &position), SN_OK);
}

static inline void add_sample(sn_profile *profile, const uint32_t *frames, uint32_t n, const sn_label *labels,
                              uint32_t label_count, const int64_t *values) {
  uint32_t stack = SN_NO_ID, set = SN_NO_ID;
  EXPECT_EQ(sn_profile_stack(profile, frames, n, &stack), SN_OK);
  EXPECT_EQ(sn_profile_labels(profile, labels, label_count, &set), SN_OK);
  EXPECT_EQ(sn_profile_add_sample(profile, stack, set, values), SN_OK);
}

/* The worked example of the format's description. */
static inline void make_example(sn_profile *profile) {
  EXPECT_EQ(sn_profile_init(profile, 0), SN_OK);
  add_type(profile, "cpu-samples", "count");
  add_type(profile, "cpu-time", "nanoseconds");
  const uint32_t leaf = frame(profile, "Foo#bar", "/app/a.rb", 10, 12);
  const uint32_t root = frame(profile, "<main>", "/app/a.rb", 0, 20);
  const sn_label labels[] = {{.key = intern(profile, "thread id"), .str = intern(profile, "7 (8)")},
                             {.key = intern(profile, "local root span id"), .num = 1234}};
  add_sample(profile, (uint32_t[]){leaf, root}, 2, labels, 2, (int64_t[]){3, 30000000});
  add_sample(profile, (uint32_t[]){root}, 1, labels, 1, (int64_t[]){1, 10000000});
  profile->time_nanos = INT64_C(1700000000000000000);
  profile->duration_nanos = INT64_C(60000000000);
  profile->period_type = profile->types[1];
  profile->period = 10000000;
  profile->default_type = profile->types[1].type;
}

/* Any profile: recursion, empty stacks, several labels, zero and negative values. */
static inline void make_random(sn_profile *profile, uint64_t seed, uint32_t samples) {
  uint32_t frames[40], pool[60];
  char name[40];
  EXPECT_EQ(sn_profile_init(profile, 0), SN_OK);
  add_type(profile, "cpu-time", "nanoseconds");
  add_type(profile, "wall-time", "nanoseconds");
  add_type(profile, "alloc-samples", "count");
  profile->default_type = profile->types[below(&seed, 3)].type;
  for (uint32_t i = 0; i < SN_ARRAY_LENGTH(pool); i++) {
    snprintf(name, sizeof(name),
             "M\xC3\xB6"
             "dule::Class%u#m%u",
             below(&seed, 5), below(&seed, 8));
    pool[i] = frame(profile, name, below(&seed, 2) ? "/app/a.rb" : "/app/b.rb", below(&seed, 3), below(&seed, 1000));
  }
  for (uint32_t s = 0; s < samples; s++) {
    const uint32_t depth = below(&seed, SN_ARRAY_LENGTH(frames));
    sn_label labels[3] = {{0}};
    for (uint32_t i = 0; i < depth; i++) frames[i] = pool[below(&seed, SN_ARRAY_LENGTH(pool))];
    snprintf(name, sizeof(name), "%u", below(&seed, 4));
    labels[0] = (sn_label){.key = intern(profile, "thread id"), .str = intern(profile, name)};
    labels[1] = (sn_label){.key = intern(profile, "span id"), .num = (int64_t)next_random(&seed)};
    labels[2] = (sn_label){.key = intern(profile, "size"), .num = 3, .num_unit = intern(profile, "bytes")};
    const int64_t values[] = {below(&seed, 2) ? below(&seed, 1u << 31) : 0, below(&seed, 200),
                              -(int64_t)below(&seed, 2)};
    add_sample(profile, frames, depth, labels, below(&seed, 4), values);
  }
  profile->time_nanos = 1 + below(&seed, 1000);
  profile->duration_nanos = 1 + below(&seed, 1000);
  profile->period = below(&seed, 5);
  EXPECT_EQ(sn_profile_add_comment(profile, "a comment", 9), SN_OK);
}

#endif
