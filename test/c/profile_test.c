#include "profile_text.h"

static void builds(void) {
  sn_profile profile;
  make_example(&profile);
  char *text = profile_text(&profile);
  EXPECT_TEXT(
      text,
      "cpu-samples/count cpu-time/nanoseconds default cpu-time period cpu-time/nanoseconds 10000000 "
      "time 1700000000000000000 duration 60000000000\n"
      "<main> /app/a.rb:20(0); thread id=7 (8) -> 1 10000000\n"
      "Foo#bar /app/a.rb:12(10);<main> /app/a.rb:20(0); local root span id=1234 thread id=7 (8) -> 3 30000000\n");
  free(text);
  sn_profile_destroy(&profile);
}

static void adds_up(void) {
  sn_profile profile;
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "a", "count");
  add_type(&profile, "b", "count");
  const uint32_t f = frame(&profile, "f", "x", 0, 1);
  EXPECT_EQ(frame(&profile, "f", "x", 0, 1), f);
  EXPECT(frame(&profile, "f", "x", 0, 2) != f);
  add_sample(&profile, &f, 1, NULL, 0, (int64_t[]){1, INT64_MAX});
  add_sample(&profile, &f, 1, NULL, 0, (int64_t[]){2, 1});
  add_sample(&profile, NULL, 0, NULL, 0, (int64_t[]){4, -1});
  EXPECT_EQ(profile.sample_count, 2);
  EXPECT_EQ(profile.values[0], 3);
  EXPECT_EQ(profile.values[1], INT64_MAX);
  EXPECT_EQ(profile.values[3], -1);
  sn_profile_destroy(&profile);
}

static void refuses(void) {
  sn_profile profile;
  uint32_t id = 77, far = 1000;
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  EXPECT_EQ(sn_profile_function(&profile, (sn_function){.name = 5}, &id), SN_INVALID);
  EXPECT_EQ(sn_profile_location(&profile, (sn_location){.function = 0}, &id), SN_INVALID);
  EXPECT_EQ(sn_profile_stack(&profile, &far, 1, &id), SN_INVALID);
  EXPECT_EQ(sn_profile_labels(&profile, &(sn_label){.key = 5}, 1, &id), SN_INVALID);
  EXPECT_EQ(id, 77);
  EXPECT_EQ(sn_profile_add_sample(&profile, 0, 0, NULL), SN_INVALID);
  for (int i = 0; i < SN_PROFILE_MAX_TYPES; i++) add_type(&profile, "t", "count");
  EXPECT_EQ(sn_profile_add_type(&profile, "t", "count", &id), SN_INVALID);
  const int64_t values[SN_PROFILE_MAX_TYPES] = {1};
  add_sample(&profile, NULL, 0, NULL, 0, values);
  EXPECT_EQ(sn_profile_add_type(&profile, "t", "count", &id), SN_INVALID);
  sn_profile_destroy(&profile);
}

static void types_and_comments(void) {
  sn_profile profile;
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "a", "count");
  add_type(&profile, "b", "bytes");
  EXPECT_EQ(sn_profile_find_type(&profile, "b"), 1);
  EXPECT_EQ(sn_profile_find_type(&profile, "bytes"), -1);
  EXPECT_EQ(sn_profile_find_type(&profile, "none"), -1);
  for (int i = 0; i < 3; i++) EXPECT_EQ(sn_profile_add_comment(&profile, "once", 4), SN_OK);
  EXPECT_EQ(profile.comment_count, 1);
  sn_profile_destroy(&profile);
}

static void limited(void) {
  sn_profile profile;
  EXPECT_EQ(sn_profile_init(&profile, 20000), SN_OK);
  add_type(&profile, "a", "count");
  const uint32_t f = frame(&profile, "f", "x", 0, 1);
  uint32_t frames[200], stack = 0, n = 0;
  for (uint32_t i = 0; i < 200; i++) frames[i] = f;
  sn_status status = SN_OK;
  while (status == SN_OK && n < 200) {
    status = sn_profile_stack(&profile, frames, n, &stack);
    if (status == SN_OK) status = sn_profile_add_sample(&profile, stack, 0, (int64_t[]){1});
    n += status == SN_OK;
  }
  EXPECT_EQ(status, SN_FULL);
  EXPECT(profile.memory.used <= 20000);
  EXPECT_EQ(profile.sample_count, n);
  sn_profile_destroy(&profile);
}

int main(void) {
  test("what was put in is there", builds);
  test("values of one stack and label set add up and saturate", adds_up);
  test("ids out of range and late types are refused", refuses);
  test("types are found by name, comments kept once", types_and_comments);
  test("a profile at its limit answers so and stays whole", limited);
  return finish(__FILE__);
}
