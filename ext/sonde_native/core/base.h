/* base: the few things every file of the extension may use. No state, no includes of other modules. */
#ifndef SONDE_CORE_BASE_H
#define SONDE_CORE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SN_MUST_USE __attribute__((warn_unused_result))
#define SN_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#define SN_LIKELY(x) __builtin_expect(!!(x), 1)
#define SN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SN_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* Checked in test builds only (-DSONDE_TESTING); release builds carry none of it. */
#ifdef SONDE_TESTING
#define sn_assert(condition) assert(condition)
#else
#define sn_assert(condition) ((void)sizeof(condition))
#endif

#endif
