/* alloc_estimate: the arithmetic of allocation sampling. Pure: no state, no clocks. docs/internals/allocation.md has
 * the reasons.
 *
 * Objects are counted in windows that lie at random. Inside a window, object number j (from 1) is picked (its stack is
 * taken) with probability min(1, m / j) and then stands for max(1, j / m) objects; some are picked more often, for
 * their bytes (alloc_sizes.h). What a window's picks stand for is multiplied by the window's factor. The sum of all
 * that is in proportion to what was allocated; the flush scales it to the VM's own count.
 * Contexts: any.
 */
#ifndef SONDE_CORE_ALLOC_ESTIMATE_H
#define SONDE_CORE_ALLOC_ESTIMATE_H

#include "base.h"

/* Weights are kept as integers in units of 1 / this. */
enum { SN_ALLOC_UNIT = 256 };

/* A random word; *state is not 0. */
static inline uint64_t sn_alloc_random(uint64_t *state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* Uniform in (0, 1]. */
static inline double sn_alloc_uniform(uint64_t *state) {
  return ((double)(sn_alloc_random(state) >> 11) + 1.0) * (1.0 / 9007199254740992.0);
}

/* The number of the next object to be picked after number j >= 0 (which was picked, or 0: none yet). Drawing whole gaps
 * saves the window a random number for each object. */
uint64_t sn_alloc_next_pick(uint64_t j, uint32_t m, uint64_t *random);

/* The chance of object number j to be picked. */
double sn_alloc_chance(uint64_t j, uint32_t m);

/* What a window in which the program ran for `ran_ns` would have lasted without us: each of `objects` cost `hook_ns`
 * more, and the stacks took `stacks_ns`. A tenth of ran_ns at least: the costs are estimates. */
double sn_alloc_program_time(int64_t ran_ns, uint64_t objects, double hook_ns, int64_t stacks_ns);

/* A weight in units, saturating. */
int64_t sn_alloc_units(double value);

/* Windows are independent of each other, objects in one window are not: a window counts as if it had seen one site
 * only, which is the worst case. Then n windows of unequal size are worth (sum)^2 / (sum of squares) equal ones, and a
 * share p of the total has a standard error of sqrt(p (1 - p) / worth) at most. The largest window counts twice among
 * the squares: where a few windows have most of the total, their number is a matter of luck. */
typedef struct sn_alloc_sum {
  double sum, squares, largest;
} sn_alloc_sum;

void sn_alloc_sum_add(sn_alloc_sum *sum, double window);
void sn_alloc_sum_scale(sn_alloc_sum *sum, double factor);
void sn_alloc_sum_merge(sn_alloc_sum *to, const sn_alloc_sum *from);
/* Equal independent windows that it is worth. 0: nothing was seen. */
double sn_alloc_sum_worth(const sn_alloc_sum *sum);

/* What is needed to state the error of a profile. */
typedef struct sn_alloc_error {
  sn_alloc_sum objects, bytes; /* of the windows: what their picks stand for */
  double estimated;            /* objects before they were scaled to the VM's count */
  double counted;              /* the VM's count; 0: unknown */
  uint64_t windows;            /* with any picks, */
  uint64_t empty;              /* and without */
  uint64_t picks;
  uint64_t scouts; /* further objects, of which the size was looked at only */
} sn_alloc_error;

/* Adds a window whose picks stand for so many objects and bytes. */
void sn_alloc_error_window(sn_alloc_error *error, double objects, double bytes, uint64_t picks);
/* Multiplies what the sums stand for. */
void sn_alloc_error_scale(sn_alloc_error *error, double factor);
void sn_alloc_error_add(sn_alloc_error *to, const sn_alloc_error *from);

#endif
