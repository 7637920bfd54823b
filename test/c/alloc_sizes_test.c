#include "core/alloc_estimate.h"
#include "core/alloc_sizes.h"
#include "harness.h"

static uint64_t seed = 88172645463325252u;

enum { TINY = 40, HUGE_SIZE = 20040, M = 1 };

/* A program: every `period`-th object, on average, is huge and made at place 7; the others at places 1 to 4. */
typedef struct program {
  uint64_t random;
  uint32_t period;
  bool shared; /* huge ones are made where others are made, too */
  bool lies;   /* places change their sizes all the time */
} program;

static uint64_t place_of(program *p, bool huge) {
  if (p->lies) return 1 + below(&p->random, 8);
  return huge && !p->shared ? 7 : 1 + below(&p->random, 4);
}

typedef struct sums {
  double huge_objects, huge_bytes, objects, bytes;
} sums;

/* One window of so many objects, as collect_alloc_window has them: truth is added to one, the estimate to the other. */
static uint32_t window(program *p, sn_alloc_sizes *sizes, uint32_t objects, sums *truth, sums *found) {
  uint64_t places[256 + SN_SIZES_SCOUTS];
  bool huge[256 + SN_SIZES_SCOUTS];
  uint32_t looked = 0, picks = 0;
  double all = 0, bytes = 0;
  uint64_t next = 1;
  sn_alloc_sizes_open(sizes);
  uint64_t scout = sn_alloc_sizes_next_scout(sizes, 0, &seed);
  for (uint64_t j = 1; j <= objects; j++) {
    const bool is_huge = below(&p->random, p->period) == 0;
    const double size = is_huge ? HUGE_SIZE : TINY;
    const uint64_t place = place_of(p, is_huge);
    const double chance = sizes->any ? sn_alloc_sizes_chance(sizes, place) : 0;
    truth->objects += 1;
    truth->bytes += size;
    truth->huge_objects += is_huge;
    truth->huge_bytes += is_huge ? size : 0;
    if (j >= scout) {
      scout = sn_alloc_sizes_next_scout(sizes, j, &seed);
      places[looked] = place;
      huge[looked++] = is_huge;
    }
    const bool by_number = j >= next;
    if (by_number) next = sn_alloc_next_pick(j, M, &seed);
    if (!by_number && !(chance > 0 && sn_alloc_uniform(&seed) <= chance)) continue;
    if (!by_number) sn_alloc_sizes_picked(sizes);
    const double weight = sn_alloc_sizes_weight(sn_alloc_chance(j, M), chance);
    all += weight;
    bytes += weight * size;
    found->huge_objects += is_huge ? weight : 0;
    found->huge_bytes += is_huge ? weight * size : 0;
    places[looked] = place;
    huge[looked++] = is_huge;
    picks++;
  }
  found->objects += all;
  found->bytes += bytes;
  for (uint32_t i = 0; i < looked; i++) sn_alloc_sizes_learn(sizes, places[i], huge[i] ? HUGE_SIZE : TINY);
  sn_alloc_sizes_window(sizes, objects, bytes);
  return picks;
}

typedef struct spread {
  double sum, squares;
  uint32_t count;
} spread;

static void add(spread *s, double value) {
  s->sum += value;
  s->squares += value * value;
  s->count++;
}

static double mean(const spread *s) {
  return s->sum / s->count;
}

static double variance(const spread *s) {
  return s->squares / s->count - mean(s) * mean(s);
}

/* Runs of 100 windows, each with a table that knows nothing: what is found over what there was, minus 1. */
static void run(program p, bool forgets, spread *count, spread *bytes, uint32_t *most_picks) {
  enum { RUNS = 250, WINDOWS = 100, OBJECTS = 1500 };
  static sn_alloc_sizes sizes;
  p.random = 1234567;
  seed = 88172645463325252u;
  for (uint32_t i = 0; i < RUNS; i++) {
    sums truth = {0}, found = {0};
    sn_alloc_sizes_clear(&sizes);
    for (int k = 0; k < WINDOWS; k++) {
      const uint32_t picks = window(&p, &sizes, OBJECTS / 2 + below(&p.random, OBJECTS), &truth, &found);
      if (picks > *most_picks) *most_picks = picks;
      if (forgets) sn_alloc_sizes_clear(&sizes);
    }
    add(count, found.huge_objects / truth.huge_objects - 1);
    add(bytes, found.bytes / truth.bytes - 1);
  }
}

static bool unbiased(const spread *s) {
  return mean(s) * mean(s) <= 16 * variance(s) / s->count; /* 4 standard errors */
}

static void expect_better(program p, double times) {
  spread count[2] = {{0}}, bytes[2] = {{0}};
  uint32_t most = 0;
  run(p, true, &count[0], &bytes[0], &most);
  run(p, false, &count[1], &bytes[1], &most);
  if (getenv("VERBOSE")) {
    printf(
        "without: count %+.4f (var %.5f) bytes %+.4f (%.5f); with: count %+.4f (%.5f) bytes %+.4f (%.5f); %u picks\n",
        mean(&count[0]), variance(&count[0]), mean(&bytes[0]), variance(&bytes[0]), mean(&count[1]),
        variance(&count[1]), mean(&bytes[1]), variance(&bytes[1]), most);
  }
  EXPECT(unbiased(&count[1]));
  EXPECT(unbiased(&bytes[1]));
  EXPECT(variance(&bytes[1]) * times <= variance(&bytes[0]));
  EXPECT(most <= 128);
}

static void huge_ones(void) {
  expect_better((program){.period = 100}, 20);
}

static void huge_among_others(void) {
  expect_better((program){.period = 100, .shared = true}, 1.5);
}

static void rare_ones(void) {
  expect_better((program){.period = 2000}, 1.5);
}

/* A table that is wrong all the time makes nothing wrong. */
static void lying_places(void) {
  expect_better((program){.period = 100, .lies = true}, 0);
}

int main(void) {
  test("huge objects of one place", huge_ones);
  test("huge objects among others of the same places", huge_among_others);
  test("a few huge objects", rare_ones);
  test("places that say nothing about sizes", lying_places);
  return finish(__FILE__);
}
