/* harness: the few lines that the C tests share. A test program is a list of test("a sentence", function) in main, and
 * ends with return finish(). Prints failures, and a last line "<program>: N passed, N failed", which run_all.sh adds
 * up. */
#ifndef SONDE_TEST_HARNESS_H
#define SONDE_TEST_HARNESS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
  const char *sentence;
  int failures; /* of the running test */
  int passed, failed;
} harness;

static inline void harness_fail(const char *file, int line, const char *what, const char *detail) {
  if (harness.failures++ < 5) printf("%s:%d: \"%s\": %s %s\n", file, line, harness.sentence, what, detail);
}

#define EXPECT(condition) ((condition) ? (void)0 : harness_fail(__FILE__, __LINE__, #condition, ""))

#define EXPECT_EQ(got, wanted) harness_equal(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(wanted))

static inline void harness_equal(const char *file, int line, const char *what, int64_t got, int64_t wanted) {
  char detail[80];
  if (got == wanted) return;
  snprintf(detail, sizeof(detail), "is %" PRId64 ", not %" PRId64, got, wanted);
  harness_fail(file, line, what, detail);
}

#define EXPECT_TEXT(got, wanted)                                                       \
  (strcmp((got), (wanted)) == 0 ? (void)0                                              \
                                : (harness_fail(__FILE__, __LINE__, #got, "differs:"), \
                                   (void)printf("--- got\n%s\n--- wanted\n%s\n", (got), (wanted))))

static inline void test(const char *sentence, void (*run)(void)) {
  harness.sentence = sentence;
  harness.failures = 0;
  run();
  *(harness.failures == 0 ? &harness.passed : &harness.failed) += 1;
}

static inline int finish(const char *file) {
  const char *slash = strrchr(file, '/');
  printf("%s: %d passed, %d failed\n", slash == NULL ? file : slash + 1, harness.passed, harness.failed);
  return harness.failed == 0 ? 0 : 1;
}

/* The same numbers in every run. */
static inline uint64_t next_random(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline uint32_t below(uint64_t *state, uint32_t bound) {
  return (uint32_t)(next_random(state) % bound);
}

#endif
