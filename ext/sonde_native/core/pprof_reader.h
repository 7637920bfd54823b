/* pprof_reader: the bytes of a profile.proto (already decompressed) into an empty, initialised profile.
 *
 * Never trusts its input: every length, id and index is checked, fields may come in any order, ids may be any non-zero
 * 64-bit numbers, packed or not; several lines in a location become several frames; unknown fields are skipped.
 * Bounded by the profile's memory limit. Rejects what go tool pprof rejects (format rules: unknown location, value
 * count, id 0, duplicate id, string 0 not empty, index out of range). On failure the profile must only be destroyed.
 * `error` (may be NULL) gets a short reason, always terminated.
 * Contexts: nogvl, gvl.
 */
#ifndef SONDE_CORE_PPROF_READER_H
#define SONDE_CORE_PPROF_READER_H

#include "profile.h"

SN_MUST_USE sn_status sn_pprof_read(sn_profile *profile, const uint8_t *bytes, size_t length, char *error,
                                    size_t error_size);

#endif
