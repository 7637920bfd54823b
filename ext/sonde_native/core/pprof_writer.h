/* pprof_writer: a profile as the bytes of profile.proto (not compressed), in one pass.
 *
 * Emits one mapping (so that viewers print a file name and ask for no symbols), ids 1..n in table order, no
 * system_name, label strings, packed ids and values, default_sample_type, period, comments. Samples whose values are
 * all zero are left out.
 * Contexts: nogvl, gvl. Nothing is shared.
 */
#ifndef SONDE_CORE_PPROF_WRITER_H
#define SONDE_CORE_PPROF_WRITER_H

#include "profile.h"
#include "sink.h"

/* mapping_name: file name of the one mapping (borrowed; "ruby"). SN_OK, or what the sink answered. */
SN_MUST_USE sn_status sn_pprof_write(const sn_profile *profile, const char *mapping_name, sn_sink *sink);

#endif
