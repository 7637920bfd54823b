/* profile_view: aggregations of a profile for people: totals, and the hottest functions ("top").
 *
 * flat: the value of samples whose leaf is in the function; cumulative: of samples that have it anywhere, each sample
 * counted once however often it recurs. Functions are told apart by name and file.
 * Contexts: nogvl, gvl. The profile is only read; several views may read one profile.
 */
#ifndef SONDE_CORE_PROFILE_VIEW_H
#define SONDE_CORE_PROFILE_VIEW_H

#include "profile.h"

typedef struct sn_top_entry {
  uint32_t function; /* id in the profile */
  int64_t flat;
  int64_t cumulative;
} sn_top_entry;

typedef enum sn_top_order { SN_TOP_BY_FLAT, SN_TOP_BY_CUMULATIVE } sn_top_order;

/* Sums of every sample type; out has type_count entries. */
void sn_profile_totals(const sn_profile *profile, int64_t *out);

/* Fills out with at most `limit` entries of the largest, ties by function name; *count says how many.
 * Entries with neither flat nor cumulative value are left out. SN_OK, SN_NO_MEMORY, SN_INVALID (no such type). */
SN_MUST_USE sn_status sn_profile_top(const sn_profile *profile, uint32_t type, sn_top_order order, sn_top_entry *out,
                                     uint32_t limit, uint32_t *count);

#endif
