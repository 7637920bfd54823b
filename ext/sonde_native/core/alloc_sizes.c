/* alloc_sizes: see alloc_sizes.h. Called inside the VM's allocation hook and in jobs. */
#include "alloc_sizes.h"

#include <string.h>

#include "alloc_estimate.h"

static const float LARGE = 4;          /* times the average object */
static const float LEAST_SIZE = 256;   /* below that no object is large */
static const uint32_t REMEMBERED = 32; /* sizes that a place's mean is made of */

void sn_alloc_sizes_clear(sn_alloc_sizes *sizes) {
  memset(sizes, 0, sizeof *sizes);
  sizes->least = LEAST_SIZE;
}

/* Two entries side by side may have it. */
static uint32_t pair_of(uint64_t place) {
  return (uint32_t)(place * UINT64_C(0x9E3779B97F4A7C15) >> 32) % (SN_SIZES_PLACES / 2) * 2;
}

static sn_sizes_place *find(sn_alloc_sizes *sizes, uint64_t place) {
  sn_sizes_place *pair = &sizes->places[pair_of(place)];
  if (pair[0].place == place) return &pair[0];
  return pair[1].place == place ? &pair[1] : NULL;
}

void sn_alloc_sizes_open(sn_alloc_sizes *sizes) {
  sizes->any = false;
  sizes->so_far = 0;
  sizes->extra = sizes->scouts = 0;
  for (uint32_t i = 0; sizes->count > 0 && i < SN_SIZES_PLACES && !sizes->any; i++) {
    sizes->any = sizes->places[i].size >= sizes->least;
  }
}

double sn_alloc_sizes_chance(sn_alloc_sizes *sizes, uint64_t place) {
  const sn_sizes_place *found = find(sizes, place);
  if (!found || found->size < sizes->least || place == 0) return 0;
  const double size = (double)found->size;
  sizes->so_far += size;
  if (sizes->extra >= SN_SIZES_AT_MOST) return 0;
  double all = sizes->expected > sizes->bytes ? sizes->expected : sizes->bytes;
  if (sizes->so_far > all) all = sizes->so_far;
  const double chance = SN_SIZES_WANTED * size / all;
  return chance < 1 ? chance : 1;
}

void sn_alloc_sizes_picked(sn_alloc_sizes *sizes) {
  sizes->extra++;
}

/* Spread over as many objects as a window has lately, then over twice as many, and so on. */
uint64_t sn_alloc_sizes_next_scout(sn_alloc_sizes *sizes, uint64_t j, uint64_t *random) {
  const uint32_t usual = SN_SIZES_SCOUTS * 3 / 4, more = SN_SIZES_SCOUTS / 16;
  if (sizes->scouts >= SN_SIZES_SCOUTS) return UINT64_MAX;
  const uint32_t doublings = sizes->scouts < usual ? 0 : 1 + (sizes->scouts - usual) / more;
  const double gap = sizes->objects / usual * (double)(1u << doublings);
  sizes->scouts++;
  return j + 1 + (uint64_t)(2 * gap * sn_alloc_uniform(random));
}

static void drop(sn_alloc_sizes *sizes, sn_sizes_place *entry) {
  memset(entry, 0, sizeof *entry);
  sizes->count--;
}

/* Free, or that of the smaller objects. */
static void add(sn_alloc_sizes *sizes, uint64_t place, float size) {
  sn_sizes_place *pair = &sizes->places[pair_of(place)];
  sn_sizes_place *entry = pair[1].size < pair[0].size ? &pair[1] : &pair[0];
  if (entry->place == 0) sizes->count++;
  *entry = (sn_sizes_place){.place = place, .square = size * size, .size = size, .seen = 1};
}

/* From a value that is at most a few times too large. (The C library's would need another library.) */
static float root(float square, float above) {
  for (int i = 0; i < 6; i++) above = (above + square / above) / 2;
  return above;
}

static void average(sn_sizes_place *entry, float size) {
  if (entry->seen < REMEMBERED) entry->seen++;
  entry->square += (size * size - entry->square) / (float)entry->seen;
  entry->size = root(entry->square, size > entry->size ? size : entry->size);
}

void sn_alloc_sizes_learn(sn_alloc_sizes *sizes, uint64_t place, size_t size) {
  const float most = 1e18f; /* whose square a float can hold */
  const float bounded = (float)size < most ? (float)size : most;
  if (place == 0) return;
  sn_sizes_place *entry = find(sizes, place);
  if (entry) {
    average(entry, bounded);
    if (entry->size < sizes->least / 8) drop(sizes, entry);
  } else if (bounded >= sizes->least) {
    add(sizes, place, bounded);
  }
}

/* A huge object that was picked by number says more than is true: the mean follows slowly upwards. (Windows that have
 * more than the mean are sn_alloc_sizes_chance's business.) */
static void follow(double *mean, double value) {
  const double most = 4 * *mean;
  if (*mean <= 0) {
    *mean = value;
  } else {
    *mean += 0.1 * ((value < most ? value : most) - *mean);
  }
}

void sn_alloc_sizes_window(sn_alloc_sizes *sizes, double objects, double bytes) {
  if (!(objects > 0) || !(bytes > 0)) return;
  follow(&sizes->objects, objects);
  follow(&sizes->bytes, bytes);
  if (sizes->so_far > 0) follow(&sizes->expected, sizes->so_far);
  const float large = LARGE * (float)(sizes->bytes / sizes->objects);
  sizes->least = large > LEAST_SIZE ? large : LEAST_SIZE;
}
