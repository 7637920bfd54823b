/* vm_stack: walks a thread's frames into the caller's arrays, leaf first. Names nothing, allocates nothing.
 *
 * A frame is a VALUE (iseq or method entry) that must be marked while it is kept; aux is a second VALUE that helps to
 * name it (0 where the VM needs none). A line of 0 means that the VM does not know it.
 * Contexts: gvl and gc, at safepoints, in GVL events and VM hooks only; never in a signal handler.
 */
#ifndef SONDE_VM_STACK_H
#define SONDE_VM_STACK_H

#include <ruby.h>

#include "../core/base.h"

/* As deep as a VM stack of the default size can get. */
enum { SN_VM_MAX_FRAMES = 16384 };

typedef struct sn_vm_stack {
  uint64_t frames[SN_VM_MAX_FRAMES];
  uint64_t aux[SN_VM_MAX_FRAMES];
  int32_t lines[SN_VM_MAX_FRAMES];
  uint32_t length;
  bool has_aux; /* whether aux was filled */
} sn_vm_stack;

/* The calling thread's stack. */
void sn_vm_stack_read_current(sn_vm_stack *stack);

/* The stack of another thread of the main Ractor, which cannot move because the caller holds the GVL. Length 0 when it
 * is dead or has not begun. */
void sn_vm_stack_read(sn_vm_stack *stack, VALUE thread);

#endif
