/* The k-th allocation fails, and all later ones: for every k. No crash, no leak (the accounts say so, and the
 * sanitizer), and what was there before is still there. */
#include "core/pprof_reader.h"
#include "core/pprof_writer.h"
#include "core/profile_merge.h"
#include "core/profile_view.h"
#include "core/raw_convert.h"
#include "core/ring_buffer.h"
#include "profile_text.h"

static void raw_store(void) {
  for (long k = 0;; k++) {
    sn_memory memory;
    sn_raw_store store;
    uint64_t seed = 1, frames[10];
    int32_t lines[10] = {0};
    sn_memory_init(&memory, 0);
    EXPECT_EQ(sn_raw_store_init(&store, &memory), SN_OK);
    memory.fail_after = k;
    for (int i = 0; i < 200; i++) {
      for (int f = 0; f < 10; f++) frames[f] = 5000 + below(&seed, 20);
      const uint32_t stack = sn_raw_store_stack(&store, frames, NULL, lines, 1 + below(&seed, 9));
      sn_raw_store_add(&store, (sn_row_key){.stack = stack, .thread = below(&seed, 3)}, SN_CPU_TIME, 1);
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < store.row_count; i++) sum += store.rows[i].values[SN_CPU_TIME];
    EXPECT_EQ(sum, 200);
    const bool failed = store.overflowed_stacks + store.overflowed_rows > 0;
    sn_raw_store_reset(&store);
    EXPECT_EQ(store.stacks.count, 1);
    sn_raw_store_destroy(&store);
    EXPECT_EQ(memory.used, 0);
    if (!failed) break;
  }
}

/* Adds to a profile until something fails; whatever a failed call was, the profile is as before. */
static sn_status build(sn_profile *profile) {
  uint32_t id, frames[3], set;
  char name[20];
  for (uint32_t i = 0; i < 40; i++) {
    sn_function function = {0};
    sn_location location = {.line = i};
    snprintf(name, sizeof(name), "function %u", i);
    sn_status status = sn_profile_string(profile, name, strlen(name), &function.name);
    if (status == SN_OK) status = sn_profile_string(profile, "bad \xff", 5, &function.filename);
    if (status == SN_OK) status = sn_profile_function(profile, function, &location.function);
    if (status == SN_OK) status = sn_profile_location(profile, location, &id);
    frames[0] = frames[1] = frames[2] = id;
    if (status == SN_OK) status = sn_profile_stack(profile, frames, i % 4, &id);
    const sn_label label = {.key = function.name, .num = i};
    if (status == SN_OK) status = sn_profile_labels(profile, &label, 1, &set);
    if (status == SN_OK) status = sn_profile_add_sample(profile, id, set, (int64_t[]){1});
    if (status == SN_OK) status = sn_profile_add_comment(profile, name, strlen(name));
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static void profile(void) {
  for (long k = 0;; k++) {
    sn_profile profile;
    uint32_t position;
    EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
    add_type(&profile, "a", "count");
    profile.memory.fail_after = k;
    const sn_status status = build(&profile);
    EXPECT(status == SN_OK || status == SN_NO_MEMORY);
    EXPECT_EQ(sn_profile_find_type(&profile, "a"), 0);
    if (status != SN_OK) EXPECT(sn_profile_add_type(&profile, "new type", "new", &position) != SN_OK);
    char *text = profile_text(&profile);
    EXPECT(text != NULL);
    free(text);
    profile.memory.fail_after = -1;
    EXPECT_EQ(build(&profile), SN_OK);
    sn_profile_destroy(&profile);
    if (status == SN_OK) break;
  }
}

static void profile_init(void) {
  for (long k = 0;; k++) {
    sn_profile profile;
    sn_memory_testing_fail_after = k;
    const sn_status status = sn_profile_init(&profile, 0);
    sn_memory_testing_fail_after = -1;
    if (status == SN_OK) {
      sn_profile_destroy(&profile);
      break;
    }
    EXPECT_EQ(profile.memory.used, 0);
  }
}

static void writer(void) {
  sn_profile profile;
  make_random(&profile, 1, 50);
  for (long k = 0;; k++) {
    sn_memory memory;
    sn_sink sink;
    sn_memory_init(&memory, 0);
    memory.fail_after = k;
    sn_sink_init(&sink, &memory);
    const sn_status status = sn_pprof_write(&profile, "ruby", &sink);
    EXPECT(status == SN_OK || status == SN_NO_MEMORY);
    sn_sink_destroy(&sink);
    EXPECT_EQ(memory.used, 0);
    if (status == SN_OK) break;
  }
  sn_profile_destroy(&profile);
}

static void reader(void) {
  sn_profile profile;
  sn_memory memory;
  sn_sink sink;
  char error[60];
  make_random(&profile, 1, 50);
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
  EXPECT_EQ(sn_pprof_write(&profile, "ruby", &sink), SN_OK);
  sn_profile_destroy(&profile);
  for (long k = 0;; k++) {
    EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
    profile.memory.fail_after = k;
    const sn_status status = sn_pprof_read(&profile, sink.bytes, sink.length, error, sizeof(error));
    if (status != SN_OK) EXPECT_TEXT(error, "out of memory");
    sn_profile_destroy(&profile);
    if (status == SN_OK) break;
  }
  sn_sink_destroy(&sink);
}

static void merge(void) {
  sn_profile into, from;
  make_random(&from, 1, 30);
  for (long k = 0;; k++) {
    EXPECT_EQ(sn_profile_init(&into, 0), SN_OK);
    into.memory.fail_after = k;
    const sn_status status = sn_profile_merge(&into, &from, (const char *const[]){"pid", "1"}, 1);
    EXPECT(status == SN_OK || status == SN_NO_MEMORY);
    char *text = profile_text(&into); /* still a valid profile */
    EXPECT(text != NULL);
    free(text);
    into.memory.fail_after = -1;
    EXPECT_EQ(sn_profile_merge(&into, &from, NULL, 0), SN_OK);
    sn_profile_destroy(&into);
    if (status == SN_OK) break;
  }
  sn_profile_destroy(&from);
}

static void top(void) {
  sn_profile profile;
  sn_top_entry entries[10];
  uint32_t count;
  make_random(&profile, 1, 30);
  for (long k = 0;; k++) {
    sn_memory_testing_fail_after = k;
    const sn_status status = sn_profile_top(&profile, 0, SN_TOP_BY_FLAT, entries, 10, &count);
    sn_memory_testing_fail_after = -1;
    if (status == SN_OK) break;
    EXPECT_EQ(status, SN_NO_MEMORY);
  }
  sn_profile_destroy(&profile);
}

static void convert(void) {
  sn_memory memory;
  sn_raw_store store;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_raw_store_init(&store, &memory), SN_OK);
  for (uint64_t i = 0; i < 20; i++) {
    const uint64_t frame_word = 5000 + i;
    const uint32_t stack = sn_raw_store_stack(&store, &frame_word, NULL, (int32_t[]){1}, 1);
    sn_raw_store_add(&store, (sn_row_key){.stack = stack, .thread = 1}, SN_CPU_TIME, 10);
  }
  const sn_thread_summary thread = {.number = 1, .cpu_time = 500, .id = "1", .id_length = 1};
  for (long k = 0;; k++) {
    sn_profile out;
    uint32_t locations[64];
    EXPECT_EQ(sn_profile_init(&out, 0), SN_OK);
    for (uint32_t i = 0; i < atomic_load(&store.location_count); i++) locations[i] = frame(&out, "f", "x", 0, i);
    out.memory.fail_after = k;
    const sn_status status = sn_raw_convert(&(sn_convert_input){.store = &store,
                                                                .locations = locations,
                                                                .threads = &thread,
                                                                .thread_count = 1,
                                                                .columns = 3,
                                                                .gc_time = -1},
                                            &out);
    EXPECT(status == SN_OK || status == SN_NO_MEMORY);
    sn_profile_destroy(&out); /* checks the account */
    if (status == SN_OK) break;
  }
  sn_raw_store_destroy(&store);
}

int main(void) {
  test("the raw store loses nothing when memory ends", raw_store);
  test("a profile stays valid when memory ends, and can be used when it is back", profile);
  test("a profile that cannot begin leaves nothing behind", profile_init);
  test("the writer reports the end of memory", writer);
  test("the reader reports the end of memory", reader);
  test("a merge that ends early leaves a valid profile", merge);
  test("top reports the end of memory", top);
  test("the conversion reports the end of memory", convert);
  return finish(__FILE__);
}
