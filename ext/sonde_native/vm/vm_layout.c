/* vm_layout: see the header. */
#include "vm_layout.h"

#include "vm_features.h"

#if SN_VM_HAS_THREAD_FRAMES

const char *sn_vm_layout_init(void) { return "not needed on this Ruby"; }
bool sn_vm_layout_usable(void) { return false; }
void sn_vm_layout_walk(sn_vm_stack *stack, VALUE thread) {
  (void)thread;
  stack->length = 0;
}
uintptr_t sn_vm_layout_thread_struct(VALUE thread) {
  (void)thread;
  return 0;
}
uintptr_t sn_vm_layout_gvl_owner(void) { return 0; }
bool sn_vm_layout_may_register_job(uintptr_t thread_struct) {
  (void)thread_struct;
  return false;
}
bool sn_vm_layout_position(uintptr_t thread_struct, uint64_t position[2]) {
  (void)thread_struct, (void)position;
  return false;
}
VALUE sn_vm_layout_label(VALUE frame, uint64_t aux) {
  (void)frame, (void)aux;
  return Qnil;
}

#endif
