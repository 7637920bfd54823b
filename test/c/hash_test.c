#include "core/hash.h"
#include "harness.h"

static void order(void) {
  const uint64_t frames[] = {5000, 6000, 7000, 8000, 9000, 5000};
  const uint64_t swapped[] = {9000, 6000, 7000, 8000, 5000, 5000};
  const int32_t lines[] = {1, 2, 3, 4, 5, 6};
  EXPECT(sn_hash_frames(frames, lines, 6) != sn_hash_frames(swapped, lines, 6));
  EXPECT(sn_hash_frames(frames, lines, 6) != sn_hash_frames(frames, lines, 5));
  EXPECT(sn_hash_frames(frames, lines, 6) == sn_hash_frames(frames, lines, 6));
}

/* Stacks that differ in one place only, as real ones do. Of 2^16 hashes into 2^16 places about 63 % of the places are
 * hit. */
static void spread(void) {
  static uint8_t hit[1 << 16];
  for (uint32_t place = 0; place < 100; place += 33) {
    uint64_t frames[100] = {0};
    int32_t lines[100] = {0};
    uint32_t places = 0;
    memset(hit, 0, sizeof(hit));
    for (uint32_t i = 0; i < sizeof(hit); i++) {
      frames[place] = 4096 + (uint64_t)(i / 16) * 40;
      lines[place] = (int32_t)(i % 16);
      uint8_t *slot = &hit[sn_hash_frames(frames, lines, 100) & 0xffff];
      places += !*slot;
      *slot = 1;
    }
    EXPECT(places > 40000 && places < 43000);
  }
}

static void words_and_bytes(void) {
  uint32_t words[20] = {0};
  uint8_t bytes[40] = {0};
  uint32_t seen[20 + 41];
  uint32_t n = 0;
  for (uint32_t i = 0; i < 20; i++) seen[n++] = sn_hash_words(words, i);
  for (uint32_t i = 0; i <= 40; i++) seen[n++] = sn_hash_bytes(bytes, i);
  for (uint32_t i = 0; i < 20; i++) {
    for (uint32_t k = 0; k < i; k++) EXPECT(seen[i] != seen[k]);
  }
  for (uint32_t i = 20; i < n; i++) {
    for (uint32_t k = 20; k < i; k++) EXPECT(seen[i] != seen[k]);
  }
}

int main(void) {
  test("the order and number of frames matter", order);
  test("stacks that differ in one frame spread evenly", spread);
  test("zeros of different lengths have different hashes", words_and_bytes);
  return finish(__FILE__);
}
