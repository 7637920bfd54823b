/* profile_merge: adds one profile to another.
 *
 * Sample types are matched by name and unit. A target without samples and types takes all of the source's types;
 * otherwise the target keeps its own and a type that the source lacks counts as zero (a type only the source has is
 * ignored; where they share none: SN_MISMATCH). Time: earliest start to latest end. Comments are united. Period: the
 * larger. extra labels (may be NULL) are put on each merged sample that lacks the key (e.g. pid). On failure the target
 * is still a valid profile, perhaps with a part of the source's samples added.
 * Contexts: nogvl, gvl.
 */
#ifndef SONDE_CORE_PROFILE_MERGE_H
#define SONDE_CORE_PROFILE_MERGE_H

#include "profile.h"

/* extra: pairs of text, key then value, `extra_count` pairs. */
SN_MUST_USE sn_status sn_profile_merge(sn_profile *into, const sn_profile *from, const char *const *extra,
                                       uint32_t extra_count);

#endif
