/* vm_gc: why the VM collected last, and of which kind that was.
 *
 * Contexts: gvl, and inside the VM's hooks on collections, after sn_vm_gc_init.
 */
#ifndef SONDE_VM_GC_H
#define SONDE_VM_GC_H

#include <ruby.h>

#include "../core/base.h"

/* Makes the names known, so that nothing is made later. Once, at load or later; may raise. */
void sn_vm_gc_init(void);

typedef struct sn_vm_gc_kind {
  uint32_t cause; /* see sn_vm_gc_cause */
  uint32_t type;  /* see sn_vm_gc_type */
} sn_vm_gc_kind;

/* Of the latest collection, or of the one under way. */
sn_vm_gc_kind sn_vm_gc_latest(void);

/* "newobj" (no free slot), "malloc" (much memory taken since), "method" (GC.start), "capi", "stress"; "unknown". */
const char *sn_vm_gc_cause(uint32_t cause);
/* "minor", "major", "compaction". */
const char *sn_vm_gc_type(uint32_t type);

/* Time spent in collections since the process began, in some unit that stays the same. Before 3.1: their number. */
uint64_t sn_vm_gc_clock(void);

#endif
