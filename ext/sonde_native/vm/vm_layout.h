/* vm_layout: the few private words of the VM that Rubies up to 3.2 make us read: frames of any thread, the GVL's owner.
 *
 * A table of offsets, accepted only after a self-test at load that reads through the kernel (a wrong guess is an error
 * code, not a crash) and compares a raw walk with rb_profile_frames. On 3.3 and later nothing is read and every
 * function here answers "not usable".
 */
#ifndef SONDE_VM_LAYOUT_H
#define SONDE_VM_LAYOUT_H

#include <ruby.h>
#include <sys/types.h>

#include "vm_stack.h"

/* Once, at load, with the GVL, after vm_thread. NULL when usable, else a static reason. Runs two short Ruby threads,
 * which are gone when it returns. May raise. */
const char *sn_vm_layout_init(void);
bool sn_vm_layout_usable(void);

/* Contexts: gvl. The thread must be alive and not run (or be the caller). */
void sn_vm_layout_walk(sn_vm_stack *stack, VALUE thread);

/* The address of a thread's struct; only to be compared with sn_vm_layout_gvl_owner, or given back to this file.
 * Contexts: gvl. */
uintptr_t sn_vm_layout_thread_struct(VALUE thread);

/* Whether the private words that lead from a thread to its control frames stand where the table says (thread struct,
 * execution context, VM stack): each is read through the kernel and checked before the next. NULL when so, else a
 * static reason. On every Ruby. The thread must be the caller. Contexts: gvl. */
const char *sn_vm_layout_check_thread(VALUE thread);

/* The struct of the thread that holds the main GVL, 0: none. A plain read. Contexts: any thread, signal. */
uintptr_t sn_vm_layout_gvl_owner(void);

/* The kernel's id of a thread that is in Thread.list, where the VM does not tell it (before 3.1); 0: unknown.
 * Contexts: gvl. */
pid_t sn_vm_layout_native_id(VALUE thread);

/* Whether the thread, which is the caller and holds the GVL, may register a postponed job now: no flush of jobs is
 * under way on it and there is one Ractor only. Contexts: signal. */
bool sn_vm_layout_may_register_job(uintptr_t thread_struct);

/* Whether other Ractors live, so that the above is false. Contexts: signal. */
bool sn_vm_layout_has_other_ractors(void);

/* Where a thread's top frames stand: equal positions mean that it has not moved (or is back at the same place). */
typedef struct sn_vm_position {
  uint64_t ec, cfp;
  uint64_t trace;       /* address of a part of the VM stack that running would have changed, */
  uint32_t trace_bytes; /* its size */
  uint32_t top;         /* and how many top frames */
  uint64_t hash;        /* of both */
} sn_vm_position;

enum { SN_VM_POSITION_BATCH = 32 };

/* How the memory of a thread that does not run is read. With the GVL it cannot move and is read as it is; without, it
 * may wake up and free what we look at at any moment, so the kernel copies it. */
typedef enum sn_vm_access { SN_VM_WITH_GVL, SN_VM_THROUGH_KERNEL } sn_vm_access;

/* For each of at most SN_VM_POSITION_BATCH threads, whether it still stands there; at most one system call for all. A
 * NULL position counts as moved. Contexts: as the access says. */
void sn_vm_layout_unmoved(sn_vm_access access, const uintptr_t *structs, const sn_vm_position *const *positions,
                          uint32_t n, bool *unmoved);

/* A copy of the frames of a thread that does not run, taken without the GVL; what it holds is only good for
 * sn_vm_layout_resolve. */
typedef struct sn_vm_copied_frame {
  uint64_t iseq; /* 0: a C function */
  uint64_t pc;
  uint64_t entry; /* what may be the method entry, or lead to it; 0: none */
} sn_vm_copied_frame;

/* MOVED: the position is known, but not the frames. */
typedef enum sn_vm_copy_result { SN_VM_COPY_UNREADABLE, SN_VM_COPY_MOVED, SN_VM_COPY_DONE } sn_vm_copy_result;

/* Where a thread stands, and at most `room` of its frames, leaf first; if there are more, both ends, and *omitted says
 * how many are missing after the first room / 2. position->ec may hold what it was last time, which saves a read; else
 * 0. Without the GVL the copy is only good if the thread has not moved by the time a marker can see it: publish it,
 * then ask sn_vm_layout_unmoved. Contexts: as the access says. */
sn_vm_copy_result sn_vm_layout_copy(sn_vm_access access, uintptr_t thread_struct, sn_vm_position *position,
                                    sn_vm_copied_frame *frames, uint32_t room, uint32_t *count, uint32_t *omitted);
/* Copied frames, which must have been marked since, as a stack. Contexts: gvl. */
void sn_vm_layout_resolve(const sn_vm_copied_frame *frames, uint32_t count, uint32_t omitted, uint64_t omitted_frame,
                          sn_vm_stack *stack);

/* Label of a frame that the public accessors would name less well (blocks; C functions of 2.7), or nil. Contexts: gvl;
 * makes a String. */
VALUE sn_vm_layout_label(VALUE frame, uint64_t aux);

#endif
