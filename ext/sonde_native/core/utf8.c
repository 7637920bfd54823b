/* utf8: see utf8.h. Called by the string table for every text that enters a profile; no locks, no memory. */
#include "utf8.h"

#include <string.h>

static const char REPLACEMENT[3] = {'\xEF', '\xBF', '\xBD'};

/* Length of a sequence by its first byte (0: none starts so), and the range that its second byte must be in: it keeps
 * out overlong forms, surrogates and what is past U+10FFFF. */
static size_t lead(uint8_t first, uint8_t *low, uint8_t *high) {
  *low = 0x80;
  *high = 0xBF;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first == 0xE0) *low = 0xA0;
  if (first == 0xED) *high = 0x9F;
  if (first == 0xF0) *low = 0x90;
  if (first == 0xF4) *high = 0x8F;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* How many bytes belong to the sequence at `at` (left > 0), and whether it is a good one. */
static size_t sequence(const uint8_t *at, size_t left, bool *good) {
  uint8_t low, high;
  const size_t length = lead(at[0], &low, &high);
  size_t i = 1;
  for (; i < length && i < left; i++) {
    if (at[i] < low || at[i] > high) break;
    low = 0x80;
    high = 0xBF;
  }
  *good = i == length;
  return i;
}

/* Skips what is plainly ASCII, eight bytes at a time. */
static size_t ascii_run(const uint8_t *at, size_t left) {
  size_t i = 0;
  uint64_t word;
  for (; left - i >= sizeof(word); i += sizeof(word)) {
    memcpy(&word, at + i, sizeof(word));
    if (word & UINT64_C(0x8080808080808080)) break;
  }
  while (i < left && at[i] < 0x80) i++;
  return i;
}

bool sn_utf8_valid(const char *bytes, size_t length) {
  const uint8_t *at = (const uint8_t *)bytes;
  bool good = true;
  for (size_t i = 0; i < length;) {
    i += ascii_run(at + i, length - i);
    if (i == length) return true;
    i += sequence(at + i, length - i, &good);
    if (!good) return false;
  }
  return true;
}

size_t sn_utf8_repair(const char *bytes, size_t length, char *out) {
  const uint8_t *at = (const uint8_t *)bytes;
  size_t used = 0;
  for (size_t i = 0; i < length;) {
    bool good;
    const size_t taken = sequence(at + i, length - i, &good);
    const size_t size = good ? taken : sizeof(REPLACEMENT);
    if (out != NULL) memcpy(out + used, good ? bytes + i : REPLACEMENT, size);
    used += size;
    i += taken;
  }
  return used;
}
