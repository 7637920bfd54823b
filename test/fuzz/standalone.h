/* A main for fuzz targets where there is no libFuzzer: replays the files given, then mutates them at random.
 *
 *   <target> [--mutations N | --seconds N] FILE...
 */
#ifndef SONDE_FUZZ_STANDALONE_H
#define SONDE_FUZZ_STANDALONE_H

#ifdef SONDE_STANDALONE
#include <time.h>

#include "harness.h"

enum { MOST_FILES = 256, MOST_BYTES = 1 << 16 };

static struct {
  uint8_t *bytes;
  size_t length;
} corpus[MOST_FILES];
static uint32_t corpus_size;

static void load(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || corpus_size == MOST_FILES) return;
  corpus[corpus_size].bytes = malloc(MOST_BYTES);
  corpus[corpus_size].length = fread(corpus[corpus_size].bytes, 1, MOST_BYTES, file);
  fclose(file);
  corpus_size++;
}

/* One to eight small damages: a byte, a bit, a cut, a piece copied elsewhere, a piece doubled. */
static size_t mutate(uint8_t *bytes, size_t length, uint64_t *seed) {
  for (uint32_t n = 1 + below(seed, 8); n > 0 && length > 0; n--) {
    const size_t at = next_random(seed) % length, from = next_random(seed) % length;
    const size_t longest = length - (at > from ? at : from);
    const size_t piece = next_random(seed) % (longest < 64 ? longest + 1 : 64);
    switch (below(seed, 6)) {
      case 0:
        bytes[at] = (uint8_t)next_random(seed);
        break;
      case 1:
        bytes[at] ^= (uint8_t)(1u << below(seed, 8));
        break;
      case 2:
        length = at + (below(seed, 8) != 0);
        break;
      case 3:
        memmove(bytes + at, bytes + from, piece);
        break;
      case 4:
        bytes[at] = below(seed, 2) ? 0xff : 0;
        break;
      default:
        if (length + piece > MOST_BYTES) break;
        memmove(bytes + at + piece, bytes + at, length - at);
        length += piece;
    }
  }
  return length;
}

/* Each input in a block of exactly its size, so that the sanitizer sees a read past its end. */
static void run_one(const uint8_t *bytes, size_t length) {
  uint8_t *exact = malloc(length + (length == 0));
  if (exact == NULL) return;
  if (length > 0) memcpy(exact, bytes, length);
  LLVMFuzzerTestOneInput(exact, length);
  free(exact);
}

int main(int argc, char **argv) {
  static uint8_t bytes[MOST_BYTES + 64];
  uint64_t seed = 1;
  long mutations = 0, seconds = 0, done = 0;
  const time_t start = time(NULL);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--mutations") == 0 && i + 1 < argc)
      mutations = atol(argv[++i]);
    else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = atol(argv[++i]);
    else
      load(argv[i]);
  }
  for (uint32_t i = 0; i < corpus_size; i++) run_one(corpus[i].bytes, corpus[i].length);
  while (corpus_size > 0 && (seconds > 0 ? time(NULL) - start < seconds : done < mutations)) {
    const uint32_t chosen = below(&seed, corpus_size);
    memcpy(bytes, corpus[chosen].bytes, corpus[chosen].length);
    run_one(bytes, mutate(bytes, corpus[chosen].length, &seed));
    done++;
  }
  for (uint32_t i = 0; i < corpus_size; i++) free(corpus[i].bytes);
  printf("%u files, %ld mutations\n%s: 1 passed, 0 failed\n", corpus_size, done, argv[0]);
  return corpus_size > 0 ? 0 : 1;
}
#endif

#endif
