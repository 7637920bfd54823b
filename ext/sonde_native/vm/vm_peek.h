/* vm_peek: what a thread's top frame was at an instant, so that the stack walked at the next safepoint can be
 * corrected.
 *
 * A safepoint comes a little later than the instant. Compiled code has left a C function by then (its time would be
 * its caller's own); a C function that calls back into Ruby (require, Class.new) has not passed one since long, and
 * the first one comes in what it called. So the one top control frame is noted at the instant: by the worker, from
 * outside and through the kernel, on Ruby 3.3 and later; by the signal's handler on the thread itself before. The job
 * compares:
 *  - the noted frame is still there, below others: these came later and are cut off
 *  - it is gone, was a C function, and its caller is on top: it is put back, by its method entry
 *  - anything else: the stack stays as it is
 * Private words are read (see vm_layout_table.h), so it has its own self-test and nothing else depends on it.
 */
#ifndef SONDE_VM_PEEK_H
#define SONDE_VM_PEEK_H

#include <ruby.h>

#include "vm_stack.h"

typedef struct sn_vm_top {
  uint64_t cfp;
  uint64_t iseq, ep;
  uint64_t caller_iseq, caller_ep;
  uint64_t entry; /* a C function's method slot, else 0 */
} sn_vm_top;

typedef enum sn_vm_peek_result { SN_PEEK_SAME, SN_PEEK_CUT, SN_PEEK_ADDED, SN_PEEK_GONE } sn_vm_peek_result;

/* Once, at load, with the GVL, after vm_layout. NULL when usable, else a static reason. */
const char *sn_vm_peek_init(void);
bool sn_vm_peek_usable(void);

/* From another thread, through the kernel. False when it could not be read whole. *known_ec: 0 at first; kept by the
 * caller for each thread. Contexts: the worker. */
bool sn_vm_peek_from_outside(uintptr_t thread_struct, uint64_t *known_ec, sn_vm_top *top);
/* Of the calling thread, at any point of its execution. Contexts: signal. */
bool sn_vm_peek_own(uintptr_t thread_struct, sn_vm_top *top);

/* Corrects the calling thread's stack, just walked. may_add: no collection began since the note. Contexts: gvl, gc. */
sn_vm_peek_result sn_vm_peek_apply(const sn_vm_top *top, uintptr_t thread_struct, bool may_add, sn_vm_stack *stack);

#ifdef SONDE_TESTING
/* Off: as if the self-test had failed. Contexts: gvl. */
void sn_vm_peek_testing_use(bool on);
#endif

#endif
