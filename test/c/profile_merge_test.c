#include "core/profile_merge.h"
#include "profile_text.h"

static void expect_text(const sn_profile *profile, const char *wanted) {
  char *text = profile_text(profile);
  EXPECT_TEXT(text, wanted);
  free(text);
}

static void into_empty(void) {
  sn_profile into, from;
  for (uint64_t seed = 0; seed < 10; seed++) {
    make_random(&from, seed, 200);
    from.period_type = from.types[1];
    EXPECT_EQ(sn_profile_init(&into, 0), SN_OK);
    EXPECT_EQ(sn_profile_merge(&into, &from, NULL, 0), SN_OK);
    char *text = profile_text(&from);
    expect_text(&into, text);
    free(text);
    sn_profile_destroy(&into);
    sn_profile_destroy(&from);
  }
}

static void sums(void) {
  sn_profile a, b;
  make_example(&a);
  make_example(&b);
  b.time_nanos += 1000;
  b.period = 7;
  EXPECT_EQ(sn_profile_add_comment(&b, "b", 1), SN_OK);
  EXPECT_EQ(sn_profile_merge(&a, &b, (const char *const[]){"pid", "42", "thread id", "x"}, 2), SN_OK);
  expect_text(
      &a,
      "cpu-samples/count cpu-time/nanoseconds default cpu-time period cpu-time/nanoseconds 10000000 "
      "time 1700000000000000000 duration 60000001000\n# b\n"
      "<main> /app/a.rb:20(0); pid=42 thread id=7 (8) -> 1 10000000\n"
      "<main> /app/a.rb:20(0); thread id=7 (8) -> 1 10000000\n"
      "Foo#bar /app/a.rb:12(10);<main> /app/a.rb:20(0); local root span id=1234 pid=42 thread id=7 (8) "
      "-> 3 30000000\n"
      "Foo#bar /app/a.rb:12(10);<main> /app/a.rb:20(0); local root span id=1234 thread id=7 (8) -> 3 30000000\n");
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_OK);
  EXPECT_EQ(a.values[1], 60000000);
  EXPECT_EQ(sn_profile_merge(&a, &a, NULL, 0), SN_INVALID);
  sn_profile_destroy(&a);
  sn_profile_destroy(&b);
}

static void types(void) {
  sn_profile a, b;
  EXPECT_EQ(sn_profile_init(&a, 0), SN_OK);
  EXPECT_EQ(sn_profile_init(&b, 0), SN_OK);
  add_type(&a, "wall-time", "nanoseconds");
  add_type(&a, "cpu-time", "nanoseconds");
  add_type(&b, "cpu-time", "nanoseconds");
  add_type(&b, "wall-time", "seconds"); /* another unit: another type */
  add_sample(&b, NULL, 0, NULL, 0, (int64_t[]){5, 9});
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_OK);
  EXPECT(a.type_count == 2 && a.values[0] == 0 && a.values[1] == 5);
  b.types[0] = b.types[1];
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_MISMATCH);
  sn_profile_destroy(&a);
  sn_profile_destroy(&b);
}

static void periods(void) {
  sn_profile a, b;
  make_example(&a);
  make_example(&b);
  b.period_type = b.types[0];
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_MISMATCH);
  EXPECT_EQ(a.values[1], 30000000);
  b.period_type = (sn_value_type){0};
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_OK);
  sn_profile_destroy(&a);
  sn_profile_destroy(&b);
}

static void times(void) {
  sn_profile a, b;
  EXPECT_EQ(sn_profile_init(&a, 0), SN_OK);
  EXPECT_EQ(sn_profile_init(&b, 0), SN_OK);
  b.time_nanos = 100, b.duration_nanos = 10;
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_OK);
  EXPECT(a.time_nanos == 100 && a.duration_nanos == 10);
  b.time_nanos = 50, b.duration_nanos = INT64_MAX;
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_OK);
  EXPECT(a.time_nanos == 50 && a.duration_nanos == INT64_MAX - 50);
  b.time_nanos = INT64_MIN;
  EXPECT_EQ(sn_profile_merge(&a, &b, NULL, 0), SN_OK);
  EXPECT(a.time_nanos == INT64_MIN && a.duration_nanos == INT64_MAX);
  sn_profile_destroy(&a);
  sn_profile_destroy(&b);
}

int main(void) {
  test("merging into an empty profile copies it", into_empty);
  test("merging sums equal samples; extra labels go where the key is missing", sums);
  test("types are matched by name and unit; none in common is a mismatch", types);
  test("different period types do not mix, and nothing is added", periods);
  test("the merged time runs from the earliest start to the latest end", times);
  return finish(__FILE__);
}
