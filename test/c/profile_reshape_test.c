/* Reshaping: chosen types, rules for labels, parts of the samples, folded stacks; failing allocations. */
#include "core/profile_reshape.h"
#include "profile_text.h"

static const sn_reshape_type CPU[] = {{"cpu-time", "cpu", "nanoseconds"}, {"no such type", "x", "y"}};

static char *reshaped(const sn_profile *profile, const sn_reshape *how) {
  sn_profile out;
  EXPECT_EQ(sn_profile_init(&out, 0), SN_OK);
  EXPECT_EQ(sn_profile_reshape(&out, profile, how), SN_OK);
  char *text = profile_text(&out);
  sn_profile_destroy(&out);
  return text;
}

static void expect_reshaped(const sn_profile *profile, const sn_reshape *how, const char *wanted) {
  char *text = reshaped(profile, how);
  EXPECT_TEXT(text, wanted);
  free(text);
}

static void types_and_labels(void) {
  sn_profile profile;
  make_example(&profile);
  const sn_reshape_label labels[] = {{"local root span id", NULL, NULL, NULL},
                                     {"thread id", "7 (8)", "thread", "main"}};
  const sn_reshape how = {.types = CPU, .type_count = 2, .labels = labels, .label_count = 2, .count = UINT32_MAX};
  expect_reshaped(&profile, &how,
                  "cpu/nanoseconds default cpu period cpu-time/nanoseconds 10000000 time 1700000000000000000 duration "
                  "60000000000\n"
                  "<main> /app/a.rb:20(0); thread=main -> 10000000\n"
                  "Foo#bar /app/a.rb:12(10);<main> /app/a.rb:20(0); thread=main -> 30000000\n");
  sn_profile_destroy(&profile);
}

static void other_values_keep_their_label(void) {
  sn_profile profile;
  make_example(&profile);
  const sn_reshape_label labels[] = {{"thread id", "9", "thread", "main"}, {"local root span id", "x", NULL, NULL}};
  const sn_reshape how = {.types = CPU, .type_count = 1, .labels = labels, .label_count = 2, .first = 0, .count = 1};
  expect_reshaped(
      &profile, &how,
      "cpu/nanoseconds default cpu period cpu-time/nanoseconds 10000000 time 1700000000000000000 duration "
      "60000000000\n"
      "Foo#bar /app/a.rb:12(10);<main> /app/a.rb:20(0); local root span id=1234 thread id=7 (8) -> 30000000\n");
  sn_profile_destroy(&profile);
}

static void numbers_in_hex(void) {
  sn_profile profile;
  make_example(&profile);
  const sn_reshape_label labels[] = {{"local root span id", NULL, "span", SN_RESHAPE_HEX},
                                     {"thread id", NULL, "thread", SN_RESHAPE_HEX}};
  const sn_reshape how = {.types = CPU, .type_count = 1, .labels = labels, .label_count = 2, .first = 0, .count = 1};
  expect_reshaped(&profile, &how,
                  "cpu/nanoseconds default cpu period cpu-time/nanoseconds 10000000 time 1700000000000000000 duration "
                  "60000000000\n"
                  "Foo#bar /app/a.rb:12(10);<main> /app/a.rb:20(0); span=00000000000004d2 thread=7 (8) -> 30000000\n");
  sn_profile_destroy(&profile);
}

static void folds(void) {
  sn_profile profile;
  uint32_t frames[10];
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "cpu-time", "nanoseconds");
  for (uint32_t i = 0; i < 10; i++) frames[i] = frame(&profile, "f", "a", 0, i);
  add_sample(&profile, frames, 10, NULL, 0, (int64_t[]){1});
  const sn_reshape how = {
      .types = CPU, .type_count = 1, .count = 1, .max_depth = 5, .period_type = "p", .period_unit = "q"};
  expect_reshaped(&profile, &how,
                  "cpu/nanoseconds default cpu period p/q 0 time 0 duration 0\n"
                  "f a:0(0);f a:1(0);(6 frames omitted) :0(0);f a:8(0);f a:9(0); -> 1\n");
  sn_profile_destroy(&profile);
}

/* Parts add up to the whole. */
static void parts(void) {
  static const sn_reshape_type ALL[] = {{"cpu-time", "cpu-time", "nanoseconds"}, {"wall-time", "wall-time", "ns"}};
  sn_profile profile;
  make_random(&profile, 11, 100);
  int64_t whole[2] = {0}, sum[2] = {0};
  for (uint32_t i = 0; i < profile.sample_count; i++) {
    for (int k = 0; k < 2; k++) whole[k] += profile.values[(size_t)i * profile.type_count + k];
  }
  for (uint32_t first = 0; first < profile.sample_count + 20; first += 7) {
    sn_profile out;
    const sn_reshape how = {.types = ALL, .type_count = 2, .first = first, .count = 7};
    EXPECT_EQ(sn_profile_init(&out, 0), SN_OK);
    EXPECT_EQ(sn_profile_reshape(&out, &profile, &how), SN_OK);
    EXPECT(out.sample_count <= 7);
    for (uint32_t i = 0; i < out.sample_count; i++) {
      for (int k = 0; k < 2; k++) sum[k] += out.values[(size_t)i * 2 + k];
    }
    sn_profile_destroy(&out);
  }
  EXPECT_EQ(sum[0], whole[0]);
  EXPECT_EQ(sum[1], whole[1]);
  sn_profile_destroy(&profile);
}

static void failing(void) {
  for (long k = 0;; k++) {
    sn_profile profile, out;
    const sn_reshape how = {.types = CPU, .type_count = 1, .count = UINT32_MAX, .max_depth = 9};
    make_random(&profile, 5, 30);
    EXPECT_EQ(sn_profile_init(&out, 0), SN_OK);
    out.memory.fail_after = k;
    const sn_status status = sn_profile_reshape(&out, &profile, &how);
    EXPECT(status == SN_OK || status == SN_NO_MEMORY);
    sn_profile_destroy(&out);
    sn_profile_destroy(&profile);
    if (status == SN_OK) break;
  }
}

int main(void) {
  test("types are chosen and renamed, labels follow their rules", types_and_labels);
  test("a rule for one value leaves others alone", other_values_keep_their_label);
  test("numbers become hexadecimal where asked", numbers_in_hex);
  test("a deep stack keeps both ends", folds);
  test("parts add up to the whole", parts);
  test("a failed allocation leaks nothing", failing);
  return finish(__FILE__);
}
