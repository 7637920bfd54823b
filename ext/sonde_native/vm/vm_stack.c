/* vm_stack: see the header. Called by jobs, GVL events, GC hooks and flushes, always with the GVL; the walk itself
 * takes no lock and makes no object. */
#include "vm_stack.h"

#include <ruby/debug.h>

#include "vm_features.h"
#include "vm_layout.h"

_Static_assert(sizeof(VALUE) == sizeof(uint64_t), "frames are kept as 64-bit words");

#if SN_VM_HAS_THREAD_FRAMES

void sn_vm_stack_read_current(sn_vm_stack *stack) {
  stack->has_aux = false;
  stack->length = (uint32_t)rb_profile_frames(0, SN_VM_MAX_FRAMES, (VALUE *)stack->frames, stack->lines);
}

void sn_vm_stack_read(sn_vm_stack *stack, VALUE thread) {
  stack->has_aux = false;
  stack->length = (uint32_t)rb_profile_thread_frames(thread, 0, SN_VM_MAX_FRAMES, (VALUE *)stack->frames, stack->lines);
}

#else

static void read_public(sn_vm_stack *stack) {
  stack->has_aux = false;
  stack->length = (uint32_t)rb_profile_frames(0, SN_VM_MAX_FRAMES, (VALUE *)stack->frames, stack->lines);
  /* The frame under the main program says <main> a second time. */
  if (SN_VM_HAS_DUMMY_FRAME && stack->length > 1 && rb_thread_current() == rb_thread_main()) stack->length--;
}

void sn_vm_stack_read_current(sn_vm_stack *stack) {
  if (sn_vm_layout_usable()) {
    sn_vm_layout_walk(stack, rb_thread_current());
  } else {
    read_public(stack);
  }
}

void sn_vm_stack_read(sn_vm_stack *stack, VALUE thread) {
  if (sn_vm_layout_usable()) {
    sn_vm_layout_walk(stack, thread);
  } else if (thread == rb_thread_current()) {
    read_public(stack);
  } else {
    stack->length = 0;
  }
}

#endif
