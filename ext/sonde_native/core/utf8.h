/* utf8: is it valid, and if not, repair it. Contexts: any. */
#ifndef SONDE_CORE_UTF8_H
#define SONDE_CORE_UTF8_H

#include "base.h"

bool sn_utf8_valid(const char *bytes, size_t length);

/* Writes the bytes with each wrong sequence (the longest beginning of a good one, or one byte) replaced by U+FFFD, and
 * returns how many bytes that makes. out may be NULL: only counts. At most three times as long as the input. */
size_t sn_utf8_repair(const char *bytes, size_t length, char *out);

#endif
