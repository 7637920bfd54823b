#include "core/wide_math.h"
#include "harness.h"

static void both_ways(void) {
  uint64_t seed = 5;
  for (int i = 0; i < 100000; i++) {
    const uint64_t a = next_random(&seed) >> below(&seed, 64);
    const uint64_t c = (next_random(&seed) >> below(&seed, 64)) | 1;
    const uint64_t b = below(&seed, 10) == 0 ? c : next_random(&seed) % c;
    EXPECT(sn_mul_div(a, b, c) == sn_mul_div_portable(a, b, c));
  }
  EXPECT(sn_mul_div_portable(UINT64_MAX, UINT64_MAX, UINT64_MAX) == UINT64_MAX);
  EXPECT_EQ(sn_mul_div_portable(10, 1, 3), 3);
}

static void saturation(void) {
  EXPECT_EQ(sn_add_saturating(INT64_MAX, 1), INT64_MAX);
  EXPECT_EQ(sn_add_saturating(INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(sn_add_saturating(INT64_MIN, INT64_MAX), -1);
  EXPECT(sn_add_saturating_unsigned(UINT64_MAX, 1) == UINT64_MAX);
  EXPECT(sn_add_saturating_unsigned(1, 2) == 3);
}

int main(void) {
  test("the portable way agrees with the machine's 128 bits", both_ways);
  test("sums saturate", saturation);
  return finish(__FILE__);
}
