/* collect_gc: the collector's pauses. Each goes to the stack that ran into it, under a frame "(garbage collection)".
 *
 * Where the VM's hooks are free, instants that fall into a pause are served when it ends, those that fell before it
 * when it begins. Elsewhere the worker asks the VM's own flag at each instant. The total is what the VM itself says
 * (GC.total_time), else the sum of the pauses as the hooks saw them.
 * Contexts: enter and exit: gc (inside the VM's hook: clocks, own memory and stack walks only). The rest: gvl.
 */
#ifndef SONDE_COLLECT_GC_H
#define SONDE_COLLECT_GC_H

#include "collect_state.h"

void sn_gc_enter(void);
void sn_gc_exit(void);

/* The detail of rows of the collection that is under way or just ended: its cause and type. Contexts: gvl, gc. */
uint32_t sn_gc_detail(sn_raw_store *store);

/* At the engine's start. May raise. */
void sn_gc_begin(void);

/* At a flush: GC time of the window in nanoseconds, -1 where the VM does not tell it. Sees to it that there is a row
 * for it. total_now: what sn_vm_events_gc_total_time says. */
int64_t sn_gc_settle(int64_t total_now);

#endif
