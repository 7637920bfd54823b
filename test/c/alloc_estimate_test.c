#include "core/alloc_estimate.h"
#include "harness.h"

static uint64_t seed = 88172645463325252u;

/* The pick of number j has probability min(1, m / j), whatever was picked before. */
static void probabilities(void) {
  enum { LAST = 200, RUNS = 200000 };
  for (uint32_t m = 1; m <= 3; m++) {
    uint32_t picked[LAST + 1] = {0};
    for (uint32_t run = 0; run < RUNS; run++) {
      for (uint64_t j = sn_alloc_next_pick(0, m, &seed); j <= LAST; j = sn_alloc_next_pick(j, m, &seed)) picked[j]++;
    }
    for (uint32_t j = 1; j <= LAST; j++) {
      const double p = j <= m ? 1.0 : (double)m / j;
      const double deviation = picked[j] - RUNS * p;
      EXPECT(deviation * deviation <= 25.0 * RUNS * p * (1 - p)); /* 5 standard errors */
    }
  }
}

/* What the picks stand for adds up to the number of objects, on average. */
static void unbiased(void) {
  enum { RUNS = 20000 };
  for (uint64_t n = 1; n <= 30000; n = n * 5 + 1) {
    double sum = 0, squares = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
      double estimate = 0;
      for (uint64_t j = sn_alloc_next_pick(0, 2, &seed); j <= n; j = sn_alloc_next_pick(j, 2, &seed)) {
        estimate += 1 / sn_alloc_chance(j, 2);
      }
      sum += estimate;
      squares += estimate * estimate;
    }
    const double mean = sum / RUNS, variance = squares / RUNS - mean * mean;
    const double error = mean - (double)n;
    EXPECT(error * error <= 25.0 * variance / RUNS + 1e-9);
  }
}

static void far_away(void) {
  const uint64_t next = sn_alloc_next_pick(UINT64_C(1) << 60, 1, &seed);
  EXPECT(next > UINT64_C(1) << 59);
  EXPECT_EQ(sn_alloc_next_pick(0, 1, &seed), 1);
  EXPECT_EQ(sn_alloc_next_pick(1, 2, &seed), 2);
}

static void program_time_and_units(void) {
  EXPECT(sn_alloc_program_time(300000, 0, 20, 0) == 300000);
  EXPECT(sn_alloc_program_time(300000, 5000, 20, 50000) == 150000); /* half of the window was our own work */
  EXPECT(sn_alloc_program_time(300000, 50000, 20, 0) == 30000);
  EXPECT(sn_alloc_program_time(-5, 5, 20, 0) == 0);
  EXPECT_EQ(sn_alloc_units(2.0), 2 * SN_ALLOC_UNIT);
  EXPECT(sn_alloc_units(1e300) > INT64_C(8000000000000000000));
  EXPECT_EQ(sn_alloc_units(-1), 0);
}

/* Equal windows are worth one less than their number, nearly, however large; a giant among them is worth a half. */
static void worth(void) {
  sn_alloc_error error = {.scouts = 7}, sum = {0};
  for (int i = 0; i < 49; i++) sn_alloc_error_window(&error, 300, 12000, 9);
  sn_alloc_error_window(&error, 0, 0, 0);
  EXPECT_EQ(sn_alloc_sum_worth(&error.objects) * 50 + 0.5, 49 * 49);
  sn_alloc_error_scale(&error, 1000);
  EXPECT_EQ(error.objects.sum, 49 * 300 * 1000);
  EXPECT_EQ(sn_alloc_sum_worth(&error.objects) * 50 + 0.5, 49 * 49);
  sn_alloc_error_add(&sum, &error);
  sn_alloc_error_add(&sum, &error);
  EXPECT_EQ(sn_alloc_sum_worth(&sum.bytes) * 99 + 0.5, 98 * 98);
  EXPECT_EQ(sum.windows, 98);
  EXPECT_EQ(sum.empty, 2);
  EXPECT_EQ(sum.picks, 882);
  EXPECT_EQ(sum.scouts, 14);
  sn_alloc_error_window(&sum, 1e12, 1e12, 1);
  EXPECT_EQ(sn_alloc_sum_worth(&sum.objects) * 2 + 0.5, 1);
  sum = (sn_alloc_error){0};
  EXPECT_EQ(sn_alloc_sum_worth(&sum.objects), 0);
}

int main(void) {
  test("object j is picked with probability m / j", probabilities);
  test("picks stand for all objects, on average", unbiased);
  test("very large numbers do not wrap", far_away);
  test("a window's factor takes the cost of looking off its length", program_time_and_units);
  test("worth is the number of equal windows", worth);
  return finish(__FILE__);
}
