/* Sonde::Native's functions for labels: enter, leave, and what holds. Called by any Ruby thread, with the GVL. */
#include <ruby/encoding.h>
#include <string.h>

#include "../collect/collect_labels.h"
#include "classes.h"
#include "raise.h"

static sn_label_pair pair_of(VALUE key, VALUE value) {
  SN_EXPECT_TYPE(key, T_STRING);
  sn_label_pair pair = {.key = StringValueCStr(key)};
  if (RB_INTEGER_TYPE_P(value)) {
    pair.number = (int64_t)NUM2ULL(value); /* as in 64 bits: identifiers of traces use all of them */
  } else {
    SN_EXPECT_TYPE(value, T_STRING);
    pair.text = StringValueCStr(value);
  }
  return pair;
}

/* labels_enter([key, value, key, value, ...]) -> id. Keys are Strings, values Strings or Integers. */
static VALUE labels_enter(VALUE native, VALUE list) {
  (void)native;
  sn_label_pair pairs[SN_LABELS_MOST];
  uint32_t count = 0;
  SN_EXPECT_TYPE(list, T_ARRAY);
  SN_EXPECT(RARRAY_LEN(list) % 2 == 0 && RARRAY_LEN(list) <= 2 * SN_LABELS_MOST, list, "at most 32 pairs");
  for (long i = 0; i + 1 < RARRAY_LEN(list); i += 2) {
    pairs[count++] = pair_of(RARRAY_AREF(list, i), RARRAY_AREF(list, i + 1));
  }
  uint32_t id = sn_labels_enter(pairs, count);
  RB_GC_GUARD(list);
  return ULONG2NUM(id);
}

/* labels_leave(id, previous) */
static VALUE labels_leave(VALUE native, VALUE id, VALUE previous) {
  (void)native;
  SN_EXPECT_TYPE(id, T_FIXNUM);
  SN_EXPECT_TYPE(previous, T_FIXNUM);
  sn_labels_leave((uint32_t)FIX2ULONG(id), (uint32_t)FIX2ULONG(previous));
  return Qnil;
}

/* labels_amend(id, key, value) */
static VALUE labels_amend(VALUE native, VALUE id, VALUE key, VALUE value) {
  (void)native;
  SN_EXPECT_TYPE(id, T_FIXNUM);
  sn_labels_amend((uint32_t)FIX2ULONG(id), pair_of(key, value));
  return Qnil;
}

/* The id of what holds in the running fiber, 0 for nothing. */
static VALUE labels_here(VALUE native) {
  (void)native;
  return ULONG2NUM(sn_labels_here());
}

/* What holds, as for labels_enter. */
static VALUE labels_list(VALUE native) {
  (void)native;
  sn_label_pair pairs[SN_LABELS_MOST];
  const uint32_t count = sn_labels_pairs(sn_labels_here(), pairs);
  VALUE list = rb_ary_new();
  for (uint32_t i = 0; i < count; i++) {
    const sn_label_pair pair = pairs[i];
    rb_ary_push(list, rb_utf8_str_new_cstr(pair.key));
    rb_ary_push(list, pair.text ? rb_utf8_str_new_cstr(pair.text) : ULL2NUM((uint64_t)pair.number));
  }
  return list;
}

void sn_define_labels(VALUE native) {
  rb_define_singleton_method(native, "labels_enter", labels_enter, 1);
  rb_define_singleton_method(native, "labels_leave", labels_leave, 2);
  rb_define_singleton_method(native, "labels_amend", labels_amend, 3);
  rb_define_singleton_method(native, "labels_here", labels_here, 0);
  rb_define_singleton_method(native, "labels_list", labels_list, 0);
}
