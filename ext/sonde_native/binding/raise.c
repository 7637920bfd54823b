/* raise: see the header. Called by the classes here, with the GVL, before they allocate anything of their own. */
#include "raise.h"

#include <string.h>

VALUE sn_error_class;
VALUE sn_format_error_class;

static VALUE defined_error(VALUE sonde, const char *name, VALUE parent) {
  ID id = rb_intern(name);
  return rb_const_defined_at(sonde, id) ? rb_const_get_at(sonde, id) : rb_define_class_under(sonde, name, parent);
}

void sn_raise_init(void) {
  VALUE sonde = rb_define_module("Sonde");
  sn_error_class = defined_error(sonde, "Error", rb_eStandardError);
  sn_format_error_class = defined_error(sonde, "FormatError", sn_error_class);
  rb_gc_register_mark_object(sn_error_class);
  rb_gc_register_mark_object(sn_format_error_class);
}

void sn_check(sn_status status, const char *doing) {
  switch (status) {
    case SN_OK:
      return;
    case SN_NO_MEMORY:
      rb_memerror();
    case SN_MALFORMED:
    case SN_TOO_LARGE:
      rb_raise(sn_format_error_class, "%s: %s", doing, sn_status_text(status));
    default:
      rb_raise(sn_error_class, "%s: %s", doing, sn_status_text(status));
  }
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

void sn_expect_type(VALUE value, int type, const char *expression, const char *expected, const char *file, int line,
                    const char *function) {
  if (RB_TYPE_P(value, type)) return;
  rb_raise(rb_eTypeError, "%s must be a %s, not a %s (%s:%d, %s)", expression, expected, rb_obj_classname(value),
           base_name(file), line, function);
}

void sn_raise_argument(VALUE value, const char *expression, const char *expected, const char *file, int line,
                       const char *function) {
  rb_raise(rb_eArgError, "%s must be %s, not %" PRIsVALUE " (%s:%d, %s)", expression, expected, rb_inspect(value),
           base_name(file), line, function);
}
