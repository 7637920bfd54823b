/* The engine's entry: the order of initialisation, and nothing else. Called once, by the loader, with the GVL. */
#include <ruby.h>

#include "binding/classes.h"
#include "binding/raise.h"
#include "collect/collect_engine.h"

static const char *own_directory(VALUE native, size_t *length) {
  *length = 0;
  ID name = rb_intern("OWN_FILES");
  if (!rb_const_defined_at(native, name)) return "";
  VALUE path = rb_const_get_at(native, name);
  rb_gc_register_mark_object(path);
  *length = (size_t)RSTRING_LEN(path);
  return RSTRING_PTR(path);
}

__attribute__((visibility("default"))) void Init_sonde_native(void);

void Init_sonde_native(void) {
  VALUE native = rb_define_module_under(rb_define_module("Sonde"), "Native");
  sn_raise_init();
  size_t length;
  const char *directory = own_directory(native, &length);
  const char *problem = sn_engine_init(directory, length);
  if (problem) rb_raise(sn_error_class, "%s", problem);
  sn_define_profile(native);
  sn_define_window(native);
  sn_define_labels(native);
  sn_define_module(native);
#ifdef SONDE_TESTING
  sn_define_testing(native);
#endif
}
