/* vm_layout: the few private words of the VM that Rubies up to 3.2 make us read: frames of any thread, the GVL's owner.
 *
 * A table of offsets, accepted only after a self-test at load that reads through the kernel (a wrong guess is an error
 * code, not a crash) and compares a raw walk with rb_profile_frames. On 3.3 and later nothing is read and every function
 * here answers "not usable".
 */
#ifndef SONDE_VM_LAYOUT_H
#define SONDE_VM_LAYOUT_H

#include <ruby.h>

#include "vm_stack.h"

/* Once, at load, with the GVL, after vm_thread. NULL when usable, else a static reason. May raise. */
const char *sn_vm_layout_init(void);
bool sn_vm_layout_usable(void);

/* Contexts: gvl. The thread must be alive and not run (or be the caller). */
void sn_vm_layout_walk(sn_vm_stack *stack, VALUE thread);

/* The address of a thread's struct; only to be compared with sn_vm_layout_gvl_owner. Contexts: gvl. */
uintptr_t sn_vm_layout_thread_struct(VALUE thread);
/* The struct of the thread that holds the main GVL, 0: none. A plain read. Contexts: any thread, signal. */
uintptr_t sn_vm_layout_gvl_owner(void);

/* Whether the thread, which is the caller, may register a postponed job now: no flush of jobs is under way on it and there
 * is one Ractor only. Contexts: signal. */
bool sn_vm_layout_may_register_job(uintptr_t thread_struct);

/* (control frame, pc) of a thread's top frame, to tell whether it has moved; read without the GVL through the kernel.
 * False when it cannot be read. Contexts: any thread. */
bool sn_vm_layout_position(uintptr_t thread_struct, uint64_t position[2]);

/* Label of a frame that the public accessors would name less well (blocks), or nil. Contexts: gvl; makes a String. */
VALUE sn_vm_layout_label(VALUE frame, uint64_t aux);

#endif
