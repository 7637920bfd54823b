/* hash: hash functions for words and bytes; no tables. Contexts: any.
 *
 * Several lanes multiply independently, because one multiplication waits for the previous one: with four lanes a stack
 * of a hundred frames costs some tens of nanoseconds. Not meant to withstand an attacker who chooses keys.
 */
#ifndef SONDE_CORE_HASH_H
#define SONDE_CORE_HASH_H

#include <string.h>

#include "base.h"

#define SN_HASH_K1 UINT64_C(0x9fb21c651e98df25)
#define SN_HASH_K2 UINT64_C(0xd6e8feb86659fd93)

/* Takes one word into a lane; for a given lane, different words give different results. */
static inline uint64_t sn_hash_step(uint64_t lane, uint64_t word) {
  lane = (lane ^ word) * SN_HASH_K1;
  return lane << 29 | lane >> 35;
}

static inline uint32_t sn_hash_finish(uint64_t hash) {
  hash ^= hash >> 32;
  hash *= SN_HASH_K2;
  hash ^= hash >> 29;
  return (uint32_t)(hash ^ hash >> 32);
}

static inline uint32_t sn_hash_finish_lanes(const uint64_t lanes[4], uint64_t length) {
  uint64_t hash = sn_hash_step(length * SN_HASH_K2, lanes[0]);
  for (int i = 1; i < 4; i++) hash = sn_hash_step(hash, lanes[i]);
  return sn_hash_finish(hash);
}

static inline uint32_t sn_hash_pair(uint64_t a, uint64_t b) {
  return sn_hash_finish(sn_hash_step(sn_hash_step(SN_HASH_K2, a), b));
}

#define SN_HASH_LANES \
  { SN_HASH_K1, SN_HASH_K2, ~SN_HASH_K1, ~SN_HASH_K2 }

/* A stack as the VM layer gives it: frames and lines side by side. */
static inline uint32_t sn_hash_frames(const uint64_t *frames, const int32_t *lines, uint32_t n) {
  uint64_t lane[4] = SN_HASH_LANES;
#define SN_HASH_FRAME(i) (frames[i] + (uint64_t)(uint32_t)lines[i] * SN_HASH_K2)
  uint32_t i = 0;
  for (; n - i >= 4; i += 4) {
    lane[0] = sn_hash_step(lane[0], SN_HASH_FRAME(i));
    lane[1] = sn_hash_step(lane[1], SN_HASH_FRAME(i + 1));
    lane[2] = sn_hash_step(lane[2], SN_HASH_FRAME(i + 2));
    lane[3] = sn_hash_step(lane[3], SN_HASH_FRAME(i + 3));
  }
  for (; i < n; i++) lane[i & 3] = sn_hash_step(lane[i & 3], SN_HASH_FRAME(i));
#undef SN_HASH_FRAME
  return sn_hash_finish_lanes(lane, n);
}

static inline uint32_t sn_hash_words(const uint32_t *words, uint32_t n) {
  uint64_t lane[4] = SN_HASH_LANES;
#define SN_HASH_TWO(i) (words[i] | (uint64_t)words[(i) + 1] << 32)
  uint32_t i = 0;
  for (; n - i >= 8; i += 8) {
    lane[0] = sn_hash_step(lane[0], SN_HASH_TWO(i));
    lane[1] = sn_hash_step(lane[1], SN_HASH_TWO(i + 2));
    lane[2] = sn_hash_step(lane[2], SN_HASH_TWO(i + 4));
    lane[3] = sn_hash_step(lane[3], SN_HASH_TWO(i + 6));
  }
#undef SN_HASH_TWO
  for (; i < n; i++) lane[i & 3] = sn_hash_step(lane[i & 3], words[i]);
  return sn_hash_finish_lanes(lane, n);
}

static inline uint32_t sn_hash_bytes(const void *data, size_t length) {
  const uint8_t *bytes = data;
  uint64_t lane[4] = SN_HASH_LANES;
  uint64_t word;
  size_t i = 0;
  unsigned turn = 0;
  for (; length - i >= sizeof(word); i += sizeof(word), turn++) {
    memcpy(&word, bytes + i, sizeof(word));
    lane[turn & 3] = sn_hash_step(lane[turn & 3], word);
  }
  word = 0;
  if (length > i) memcpy(&word, bytes + i, length - i);
  lane[turn & 3] = sn_hash_step(lane[turn & 3], word);
  return sn_hash_finish_lanes(lane, length);
}

#endif
