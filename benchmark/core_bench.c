/* core_bench: what the C core costs: one sample of a known stack, encoding, reading, top. Run by `make -C test/c
 * bench`.
 *
 * Prints one line for each figure; nothing is asserted. An argument divides the sizes (for a quick run in tests).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../ext/sonde_native/core/pprof_reader.h"
#include "../ext/sonde_native/core/pprof_writer.h"
#include "../ext/sonde_native/core/profile_merge.h"
#include "../ext/sonde_native/core/profile_view.h"
#include "../ext/sonde_native/core/raw_store.h"
#include "../ext/sonde_native/core/hash.h"

enum { STACKS = 100000, DEPTH = 50, MAX_DEPTH = 1000, KNOWN = 64 };

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check(sn_status status) {
  if (status == SN_OK) return;
  fprintf(stderr, "core_bench: %s\n", sn_status_text(status));
  exit(1);
}

static uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static volatile uint32_t keep_alive;

static void bench_hash(uint32_t depth, uint32_t rounds) {
  static uint64_t frames[MAX_DEPTH];
  static int32_t lines[MAX_DEPTH];
  for (uint32_t i = 0; i < depth; i++) frames[i] = 4096 + i * 40, lines[i] = (int32_t)i;
  uint32_t sum = 0;
  const double start = seconds();
  for (uint32_t r = 0; r < rounds; r++) {
    lines[0] = (int32_t)r;
    sum += sn_hash_frames(frames, lines, depth);
  }
  printf("hash of a stack of depth %4u: %8.1f ns\n", depth, (seconds() - start) / rounds * 1e9);
  keep_alive = sum;
}

/* KNOWN stacks that share their root half, in turn, as a program with a few dozen hot paths has them. */
static void bench_sample(uint32_t depth, uint32_t rounds) {
  static uint64_t frames[KNOWN][MAX_DEPTH];
  static int32_t lines[KNOWN][MAX_DEPTH];
  sn_memory memory;
  sn_raw_store store;
  uint64_t seed = depth;
  sn_memory_init(&memory, 0);
  check(sn_raw_store_init(&store, &memory));
  for (uint32_t s = 0; s < KNOWN; s++) {
    for (uint32_t i = 0; i < depth; i++) {
      frames[s][i] = i < depth / 2 ? 4096 + next_random(&seed) % 5000 * 40 : 1000000 + i * 40;
      lines[s][i] = (int32_t)(frames[s][i] % 500);
    }
  }
  double start = 0;
  for (uint32_t r = 0; r < rounds + KNOWN; r++) {
    if (r == KNOWN) start = seconds();
    const uint32_t stack = sn_raw_store_stack(&store, frames[r % KNOWN], NULL, lines[r % KNOWN], depth);
    sn_row *row = sn_raw_store_row(&store, (sn_row_key){.stack = stack, .thread = r % 4, .state = SN_STATE_RUNNING});
    row->values[SN_CPU_TIME] += 1000;
    row->values[SN_CPU_SAMPLES]++;
    row->values[SN_WALL_TIME] += 1000;
  }
  printf("sample of a known stack of depth %4u: %8.1f ns\n", depth, (seconds() - start) / rounds * 1e9);
  sn_raw_store_destroy(&store);
}

static void add_text(sn_profile *profile, const char *format, uint32_t number, uint32_t *id) {
  char text[96];
  snprintf(text, sizeof(text), format, number);
  check(sn_profile_string(profile, text, strlen(text), id));
}

static void make_profile(sn_profile *profile, uint32_t stacks) {
  uint32_t position, locations[20000], ids[DEPTH], stack, label_set;
  uint64_t seed = 1;
  check(sn_profile_init(profile, 0));
  check(sn_profile_add_type(profile, "cpu-time", "nanoseconds", &position));
  check(sn_profile_add_type(profile, "wall-time", "nanoseconds", &position));
  for (uint32_t i = 0; i < SN_ARRAY_LENGTH(locations); i++) {
    sn_function function = {.start_line = i % 1000};
    sn_location location = {.line = i % 1000 + 5};
    add_text(profile, "Some::Module%u#a_method", i / 4, &function.name);
    add_text(profile, "/app/vendor/bundle/ruby/gems/some_gem/lib/file_%u.rb", i / 40, &function.filename);
    check(sn_profile_function(profile, function, &location.function));
    check(sn_profile_location(profile, location, &locations[i]));
  }
  sn_label label = {0};
  add_text(profile, "thread id", 0, &label.key);
  add_text(profile, "%u (8)", 7, &label.str);
  check(sn_profile_labels(profile, &label, 1, &label_set));
  for (uint32_t s = 0; s < stacks; s++) {
    for (uint32_t i = 0; i < DEPTH; i++) ids[i] = locations[next_random(&seed) % SN_ARRAY_LENGTH(locations)];
    check(sn_profile_stack(profile, ids, DEPTH, &stack));
    check(sn_profile_add_sample(profile, stack, label_set, (int64_t[]){10000000 + s, 12000000 + s}));
  }
}

static void bench_profile(uint32_t stacks) {
  sn_profile profile, read, merged;
  sn_memory memory;
  sn_sink sink;
  sn_top_entry top[20];
  uint32_t count;
  double start = seconds();
  make_profile(&profile, stacks);
  printf("building %u stacks of depth %d: %.3f s, %.1f MB\n", stacks, DEPTH, seconds() - start,
         (double)profile.memory.used / 1e6);
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
  start = seconds();
  check(sn_pprof_write(&profile, "ruby", &sink));
  printf("encoding them: %.3f s, %.1f MB\n", seconds() - start, (double)sink.length / 1e6);
  start = seconds();
  check(sn_profile_init(&read, 0));
  check(sn_pprof_read(&read, sink.bytes, sink.length, NULL, 0));
  printf("reading them: %.3f s\n", seconds() - start);
  start = seconds();
  check(sn_profile_top(&read, 0, SN_TOP_BY_FLAT, top, SN_ARRAY_LENGTH(top), &count));
  printf("top of them: %.3f s\n", seconds() - start);
  start = seconds();
  check(sn_profile_init(&merged, 0));
  check(sn_profile_merge(&merged, &read, NULL, 0));
  check(sn_profile_merge(&merged, &read, NULL, 0));
  printf("merging them twice: %.3f s\n", seconds() - start);
  sn_sink_destroy(&sink);
  sn_profile_destroy(&merged);
  sn_profile_destroy(&read);
  sn_profile_destroy(&profile);
}

int main(int argc, char **argv) {
  const int divisor = argc > 1 ? atoi(argv[1]) : 1;
  const uint32_t by = divisor > 0 ? (uint32_t)divisor : 1;
  bench_hash(100, 2000000 / by);
  bench_sample(10, 4000000 / by);
  bench_sample(100, 1000000 / by);
  bench_sample(1000, 100000 / by);
  bench_profile(STACKS / by);
  bench_profile(STACKS * 8 / by);
  return 0;
}
