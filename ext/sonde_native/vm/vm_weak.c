/* vm_weak: see the header. Called with the GVL by jobs and flushes. No lock. */
#include "vm_weak.h"

#include <stdlib.h>

#include "vm_features.h"

extern const char ruby_version[];

static int patch_level(void) {
  const char *at = ruby_version;
  int dots = 0;
  while (*at && dots < 2) dots += *at++ == '.';
  return atoi(at);
}

const char *sn_vm_weak_refusal(void) {
  static const char *const reason =
      "weak maps of this Ruby are damaged by GC.compact (Bug #19529): use 3.1.4, 3.2.3 or later";
  if (SN_RUBY_AT_LEAST(3, 3)) return NULL;
  if (SN_RUBY_AT_LEAST(3, 2)) return patch_level() >= 3 ? NULL : reason;
  if (SN_RUBY_AT_LEAST(3, 1)) return patch_level() >= 4 ? NULL : reason;
  return reason;
}

static VALUE method(VALUE map, const char *name) {
  ID id = rb_intern(name);
  return rb_respond_to(map, id) ? rb_obj_method(map, ID2SYM(id)) : Qfalse;
}

void sn_vm_weak_make(sn_vm_weak *weak) {
  VALUE space = rb_const_get(rb_cObject, rb_intern("ObjectSpace"));
  VALUE map = rb_class_new_instance(0, NULL, rb_const_get(space, rb_intern("WeakMap")));
  weak->map = map;
  weak->set = method(map, "[]=");
  weak->get = method(map, "[]");
  weak->forget = method(map, "delete");
}

void sn_vm_weak_mark(const sn_vm_weak *weak) {
  const VALUE all[] = {weak->map, weak->set, weak->get, weak->forget};
  for (size_t i = 0; i < SN_ARRAY_LENGTH(all); i++) rb_gc_mark(all[i]);
}

void sn_vm_weak_set(const sn_vm_weak *weak, uint32_t number, VALUE object) {
  const VALUE arguments[] = {UINT2NUM(number), object};
  rb_method_call(2, arguments, weak->set);
}

VALUE sn_vm_weak_get(const sn_vm_weak *weak, uint32_t number) {
  const VALUE arguments[] = {UINT2NUM(number)};
  return rb_method_call(1, arguments, weak->get);
}

void sn_vm_weak_forget(const sn_vm_weak *weak, uint32_t number) {
  const VALUE arguments[] = {UINT2NUM(number)};
  if (weak->forget) rb_method_call(1, arguments, weak->forget);
}
