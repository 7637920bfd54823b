/* vm_object: see the header. Called with the GVL, by the allocation hook, by jobs and by the flush. No lock. */
#include "vm_object.h"

#include <string.h>

/* Exported by every Ruby, declared by none. */
int rb_objspace_internal_object_p(VALUE object);
size_t rb_obj_memsize_of(VALUE object);

static const char *const kinds[SN_VM_FIRST_CLASS] = {
    [T_OBJECT] = "object", [T_CLASS] = "class",     [T_MODULE] = "module",     [T_FLOAT] = "float",
    [T_STRING] = "string", [T_REGEXP] = "regexp",   [T_ARRAY] = "array",       [T_HASH] = "hash",
    [T_STRUCT] = "struct", [T_BIGNUM] = "bignum",   [T_FILE] = "file",         [T_DATA] = "data",
    [T_MATCH] = "match",   [T_COMPLEX] = "complex", [T_RATIONAL] = "rational", [T_SYMBOL] = "symbol",
    [T_IMEMO] = "imemo",   [T_NODE] = "node",       [T_ICLASS] = "iclass",
};

static uint64_t kind_word(int type) {
  return type == T_NONE ? (uint64_t)T_IMEMO : (uint64_t)type;
}

/* Internal kinds may have anything in the place of their class. */
static bool is_internal_kind(int type) {
  return type == T_IMEMO || type == T_NODE || type == T_ICLASS || type == T_NONE || type == T_ZOMBIE || type == T_MOVED;
}

uint64_t sn_vm_object_class(VALUE object) {
  int type = RB_BUILTIN_TYPE(object);
  if (is_internal_kind(type)) return kind_word(type);
  VALUE class = RBASIC_CLASS(object);
  if (!class || RB_SPECIAL_CONST_P(class)) return kind_word(type);
  class = rb_class_real(class); /* of an object with a singleton class: reads only */
  return class ? (uint64_t) class : kind_word(type);
}

/* Without ":0x0000..." after a name; cut where it is very long. */
static VALUE without_addresses(VALUE name) {
  char text[512];
  size_t used = 0;
  const char *at = RSTRING_PTR(name), *end = at + RSTRING_LEN(name);
  while (at < end && used < sizeof text) {
    if (end - at > 3 && memcmp(at, ":0x", 3) == 0) {
      at += 3;
      while (at < end && memchr("0123456789abcdef", *at, 16)) at++;
    } else {
      text[used++] = *at++;
    }
  }
  RB_GC_GUARD(name);
  return rb_str_new(text, (long)used);
}

VALUE sn_vm_object_class_name(uint64_t word) {
  if (word < SN_VM_FIRST_CLASS) {
    const char *kind = kinds[word] ? kinds[word] : "unknown";
    return rb_sprintf("(VM internal, %s)", kind);
  }
  return without_addresses(rb_class_path((VALUE)word));
}

bool sn_vm_object_is_measurable(VALUE object) {
  return !is_internal_kind(RB_BUILTIN_TYPE(object));
}

bool sn_vm_object_has_buffer(VALUE object) {
  int type = RB_BUILTIN_TYPE(object);
  return type == T_STRING || type == T_ARRAY || type == T_HASH || type == T_BIGNUM;
}

bool sn_vm_object_is_visible(VALUE object) {
  return !rb_objspace_internal_object_p(object);
}

size_t sn_vm_object_size(VALUE object) {
  return rb_obj_memsize_of(object);
}

size_t sn_vm_object_slot_size(void) {
  return 5 * sizeof(VALUE);
}
