/* alloc_estimate: see alloc_estimate.h. Called inside the VM's allocation hook, in jobs and by the flush. */
#include "alloc_estimate.h"

/* Nobody in (j, k] is picked with probability (1 - m / (j + 1)) ... (1 - m / k), which is the product, over i below m,
 * of (j - i) / (k - i). Each factor is the chance that one lottery's next number lies beyond k; so the next pick is the
 * first of m such lotteries' numbers. */
uint64_t sn_alloc_next_pick(uint64_t j, uint32_t m, uint64_t *random) {
  const double most = 1e18;
  if (j < m) return j + 1;
  double first = most;
  for (uint32_t i = 0; i < m; i++) {
    const double drawn = (double)(j - i) / sn_alloc_uniform(random) + (double)i;
    if (drawn < first) first = drawn;
  }
  const uint64_t next = (uint64_t)first + 1;
  return next > j ? next : j + 1;
}

double sn_alloc_chance(uint64_t j, uint32_t m) {
  return j <= m ? 1.0 : (double)m / (double)j;
}

double sn_alloc_program_time(int64_t ran_ns, uint64_t objects, double hook_ns, int64_t stacks_ns) {
  const double ran = ran_ns > 0 ? (double)ran_ns : 0;
  const double rest = ran - hook_ns * (double)objects - (double)stacks_ns;
  return rest > ran / 10 ? rest : ran / 10;
}

int64_t sn_alloc_units(double value) {
  const double most = 9.0e18;
  value = value * SN_ALLOC_UNIT + 0.5;
  if (!(value > 0)) return 0;
  return value < most ? (int64_t)value : (int64_t)most;
}

void sn_alloc_sum_add(sn_alloc_sum *sum, double window) {
  sum->sum += window;
  sum->squares += window * window;
  if (window > sum->largest) sum->largest = window;
}

void sn_alloc_sum_scale(sn_alloc_sum *sum, double factor) {
  sum->sum *= factor;
  sum->squares *= factor * factor;
  sum->largest *= factor;
}

void sn_alloc_sum_merge(sn_alloc_sum *to, const sn_alloc_sum *from) {
  to->sum += from->sum;
  to->squares += from->squares;
  if (from->largest > to->largest) to->largest = from->largest;
}

double sn_alloc_sum_worth(const sn_alloc_sum *sum) {
  return sum->squares > 0 ? sum->sum * sum->sum / (sum->squares + sum->largest * sum->largest) : 0;
}

void sn_alloc_error_window(sn_alloc_error *error, double objects, double bytes, uint64_t picks) {
  if (picks == 0) {
    error->empty++;
    return;
  }
  error->windows++;
  error->picks += picks;
  sn_alloc_sum_add(&error->objects, objects);
  sn_alloc_sum_add(&error->bytes, bytes);
}

void sn_alloc_error_scale(sn_alloc_error *error, double factor) {
  sn_alloc_sum_scale(&error->objects, factor);
  sn_alloc_sum_scale(&error->bytes, factor);
}

void sn_alloc_error_add(sn_alloc_error *to, const sn_alloc_error *from) {
  sn_alloc_sum_merge(&to->objects, &from->objects);
  sn_alloc_sum_merge(&to->bytes, &from->bytes);
  to->estimated += from->estimated;
  to->counted += from->counted;
  to->windows += from->windows;
  to->empty += from->empty;
  to->picks += from->picks;
  to->scouts += from->scouts;
}
