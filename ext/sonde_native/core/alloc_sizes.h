/* alloc_sizes: which places of a program make large objects, and with which chance one of theirs is picked for its
 * bytes. Pure: no state of its own, no clocks. docs/internals/allocation.md has the reasons.
 *
 * Picks by number (alloc_estimate.h) hardly ever meet the few huge objects that have most of the bytes. How large an
 * object becomes is not known at its birth; but the same place makes objects of about the same size. So sizes of
 * objects that were looked at are kept by place, and an object from a place of large ones is picked with a chance in
 * proportion to the size expected of it, on top of the picks by number. The chance depends on the past only, and the
 * object then stands for 1 / chance: whatever the table holds, nothing is biased, a bad guess is only less exact.
 *
 * To learn of such places early, a number of objects are looked at for their size only: that is much cheaper than their
 * stacks are.
 *
 * A place is any word that is the same for objects made at the same place; 0: unknown.
 * Contexts: any; one thread at a time.
 */
#ifndef SONDE_CORE_ALLOC_SIZES_H
#define SONDE_CORE_ALLOC_SIZES_H

#include "base.h"

enum {
  SN_SIZES_PLACES = 512,
  SN_SIZES_WANTED = 8,   /* picks of a window for their bytes, if all of them were made by large objects */
  SN_SIZES_AT_MOST = 40, /* the same of a window that has more bytes than others had lately */
  SN_SIZES_SCOUTS = 128, /* objects of a window, at most, that are looked at for their size only */
};

typedef struct sn_sizes_place {
  uint64_t place; /* 0: free */
  float square;   /* of the size: its mean, */
  float size;     /* and the root of that, to which the best chance is in proportion */
  uint32_t seen;
} sn_sizes_place;

typedef struct sn_alloc_sizes {
  sn_sizes_place places[SN_SIZES_PLACES]; /* of large objects, as far as is known */
  uint32_t count;
  double objects, bytes; /* of a window with objects, on average lately, */
  double expected;       /* and of what was expected of its large ones */
  float least;           /* from this size on an object is large */
  /* this window: */
  bool any;      /* a place of large objects is known */
  double so_far; /* bytes expected of large objects so far */
  uint32_t extra, scouts;
} sn_alloc_sizes;

void sn_alloc_sizes_clear(sn_alloc_sizes *sizes);

/* A window begins. */
void sn_alloc_sizes_open(sn_alloc_sizes *sizes);
/* The chance with which the next object, made at `place`, is picked for its bytes. 0: not at all. Each object must be
 * asked about once, in order, while sizes->any. */
double sn_alloc_sizes_chance(sn_alloc_sizes *sizes, uint64_t place);
/* It was, and would not have been by number. */
void sn_alloc_sizes_picked(sn_alloc_sizes *sizes);

/* The number of the next object to be looked at for its size only, after number j (0: none yet); *random as of
 * alloc_estimate.h. */
uint64_t sn_alloc_sizes_next_scout(sn_alloc_sizes *sizes, uint64_t j, uint64_t *random);

/* An object made there has this size. Not between two objects of one window. */
void sn_alloc_sizes_learn(sn_alloc_sizes *sizes, uint64_t place, size_t size);
/* What a window had, as estimated. */
void sn_alloc_sizes_window(sn_alloc_sizes *sizes, double objects, double bytes);

/* How many objects one stands for that was picked by number with one chance, or for its bytes with the other. */
static inline double sn_alloc_sizes_weight(double by_number, double by_size) {
  return 1 / (by_number + by_size - by_number * by_size);
}

#endif
