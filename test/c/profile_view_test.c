#include "core/profile_view.h"
#include "profile_text.h"

static void expect_entry(const sn_profile *profile, const sn_top_entry *entry, const char *name, int64_t flat,
                         int64_t cumulative) {
  EXPECT_TEXT(string_of(profile, profile->functions[entry->function].name), name);
  EXPECT_EQ(entry->flat, flat);
  EXPECT_EQ(entry->cumulative, cumulative);
}

static void example(void) {
  sn_profile profile;
  sn_top_entry top[5];
  uint32_t count = 0;
  int64_t totals[2];
  make_example(&profile);
  sn_profile_totals(&profile, totals);
  EXPECT(totals[0] == 4 && totals[1] == 40000000);
  EXPECT_EQ(sn_profile_top(&profile, 1, SN_TOP_BY_FLAT, top, 5, &count), SN_OK);
  EXPECT_EQ(count, 2);
  expect_entry(&profile, &top[0], "Foo#bar", 30000000, 30000000);
  expect_entry(&profile, &top[1], "<main>", 10000000, 40000000);
  EXPECT_EQ(sn_profile_top(&profile, 0, SN_TOP_BY_CUMULATIVE, top, 1, &count), SN_OK);
  EXPECT_EQ(count, 1);
  expect_entry(&profile, &top[0], "<main>", 1, 4);
  EXPECT_EQ(sn_profile_top(&profile, 0, SN_TOP_BY_FLAT, top, 0, &count), SN_OK);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(sn_profile_top(&profile, 2, SN_TOP_BY_FLAT, top, 5, &count), SN_INVALID);
  sn_profile_destroy(&profile);
}

static void recursion(void) {
  sn_profile profile;
  sn_top_entry top[5];
  uint32_t count;
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "a", "count");
  /* f with two start lines and two lines is one function; g of another file is another */
  const uint32_t f1 = frame(&profile, "f", "x", 1, 1), f2 = frame(&profile, "f", "x", 2, 9);
  const uint32_t g1 = frame(&profile, "g", "x", 1, 1), g2 = frame(&profile, "g", "y", 1, 1);
  add_sample(&profile, (uint32_t[]){f1, g1, f2, f1, g2}, 5, NULL, 0, (int64_t[]){10});
  add_sample(&profile, (uint32_t[]){g2}, 1, NULL, 0, (int64_t[]){10});
  add_sample(&profile, NULL, 0, NULL, 0, (int64_t[]){99});
  EXPECT_EQ(sn_profile_top(&profile, 0, SN_TOP_BY_FLAT, top, 5, &count), SN_OK);
  EXPECT_EQ(count, 3);
  expect_entry(&profile, &top[0], "g", 10, 20);
  expect_entry(&profile, &top[1], "f", 10, 10);
  expect_entry(&profile, &top[2], "g", 0, 10);
  sn_profile_destroy(&profile);
}

/* The slow, obvious way. */
static void slow_top(const sn_profile *profile, uint32_t function, int64_t *flat, int64_t *cumulative) {
  *flat = *cumulative = 0;
  for (uint32_t s = 0; s < profile->sample_count; s++) {
    uint32_t depth;
    const uint32_t *stack = sn_stack_table_get(&profile->stacks, profile->samples[s].stack, &depth);
    bool found = false;
    for (uint32_t i = 0; i < depth; i++) {
      const sn_function *a = &profile->functions[profile->locations[stack[i]].function];
      const sn_function *b = &profile->functions[function];
      if (a->name != b->name || a->filename != b->filename) continue;
      found = true;
      if (i == 0) *flat += profile->values[(size_t)s * profile->type_count];
    }
    if (found) *cumulative += profile->values[(size_t)s * profile->type_count];
  }
}

static void random_profiles(void) {
  static sn_top_entry top[1000];
  for (uint64_t seed = 0; seed < 20; seed++) {
    sn_profile profile;
    uint32_t count, all;
    make_random(&profile, seed, 100);
    for (int order = SN_TOP_BY_FLAT; order <= SN_TOP_BY_CUMULATIVE; order++) {
      EXPECT_EQ(sn_profile_top(&profile, 0, (sn_top_order)order, top, 1000, &all), SN_OK);
      for (uint32_t i = 0; i < all; i++) {
        int64_t flat, cumulative;
        slow_top(&profile, top[i].function, &flat, &cumulative);
        EXPECT_EQ(top[i].flat, flat);
        EXPECT_EQ(top[i].cumulative, cumulative);
        if (i == 0) continue;
        EXPECT(order == SN_TOP_BY_FLAT ? top[i - 1].flat >= flat : top[i - 1].cumulative >= cumulative);
      }
      sn_top_entry few[7];
      EXPECT_EQ(sn_profile_top(&profile, 0, (sn_top_order)order, few, 7, &count), SN_OK);
      EXPECT_EQ(count, all < 7 ? all : 7);
      for (uint32_t i = 0; i < count; i++) EXPECT_EQ(few[i].function, top[i].function);
    }
    sn_profile_destroy(&profile);
  }
}

int main(void) {
  test("the worked example has the totals and the order that pprof prints", example);
  test("a function counts once in a sample, told apart by name and file", recursion);
  test("flat, cumulative and order agree with the slow way", random_profiles);
  return finish(__FILE__);
}
