/* profile_reshape: a profile as a backend wants it: other sample types and names, other labels, a part of the samples,
 * stacks of bounded depth. The tables that say what becomes of what are the caller's.
 *
 * Contexts: nogvl, gvl. Reads `in`, writes only `out`.
 */
#ifndef SONDE_CORE_PROFILE_RESHAPE_H
#define SONDE_CORE_PROFILE_RESHAPE_H

#include "profile.h"

/* The sample type `from` under another name and unit. One that the profile lacks is left out. */
typedef struct sn_reshape_type {
  const char *from, *type, *unit;
} sn_reshape_type;

#define SN_RESHAPE_HEX "%016x"

/* What becomes of a label: the first rule that fits holds; without one it stays as it is. */
typedef struct sn_reshape_label {
  const char *key;
  const char *value;     /* fits only this text; NULL: any, numbers too */
  const char *new_key;   /* NULL: the label is left out */
  const char *new_value; /* NULL: the value stays; SN_RESHAPE_HEX: a number becomes 16 hexadecimal digits */
} sn_reshape_label;

typedef struct sn_reshape {
  const sn_reshape_type *types;
  uint32_t type_count;
  const sn_reshape_label *labels;
  uint32_t label_count;
  const char *period_type, *period_unit; /* NULL: as in the profile */
  uint32_t first, count;                 /* samples, by position */
  uint32_t max_depth; /* of a deeper stack both ends are kept, and a frame says how many are left out; 0: all */
} sn_reshape;

/* out: initialised and empty. Samples without a value in the chosen types are left out; those that come to the same
 * stack and labels are added up. SN_OK, or what the profile answered. */
SN_MUST_USE sn_status sn_profile_reshape(sn_profile *out, const sn_profile *in, const sn_reshape *how);

#endif
