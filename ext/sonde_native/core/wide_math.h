/* wide_math: products of 64-bit numbers that need 128 bits, and sums that saturate. Contexts: any. */
#ifndef SONDE_CORE_WIDE_MATH_H
#define SONDE_CORE_WIDE_MATH_H

#include "base.h"

/* a * b / c, rounded down, by schoolbook division; for machines without a 128-bit type. Needs b <= c, c > 0. */
static inline uint64_t sn_mul_div_portable(uint64_t a, uint64_t b, uint64_t c) {
  /* Shift and add: keeps quotient and remainder of (the leading bits of a) * b / c. */
  uint64_t quotient = 0, remainder = 0;
  for (int bit = 63; bit >= 0; bit--) {
    const uint64_t add = (a >> bit & 1) ? b : 0;
    quotient <<= 1;
    for (int twice = 0; twice < 2; twice++) {
      const uint64_t more = twice == 0 ? remainder : add; /* remainder := 2 * remainder + add, modulo c */
      if (more == c) {
        quotient++;
      } else if (remainder >= c - more) {
        remainder -= c - more;
        quotient++;
      } else {
        remainder += more;
      }
    }
  }
  return quotient;
}

/* a * b / c, rounded down. Needs b <= c, c > 0; the result is then at most a. */
static inline uint64_t sn_mul_div(uint64_t a, uint64_t b, uint64_t c) {
  sn_assert(c > 0 && b <= c);
#ifdef __SIZEOF_INT128__
  __extension__ typedef unsigned __int128 wide;
  return (uint64_t)((wide)a * b / c);
#else
  return sn_mul_div_portable(a, b, c);
#endif
}

static inline int64_t sn_add_saturating(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

static inline uint64_t sn_add_saturating_unsigned(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
