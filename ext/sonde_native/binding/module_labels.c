/* Sonde::Native's functions for labels: enter, leave, amend, and what holds. Called by any Ruby thread, with the
 * GVL. */
#include <ruby/encoding.h>
#include <stdlib.h>

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

/* A block that sets labels. It lies on the stack of the fiber that is in the block: where the collector takes the fiber
 * away, it takes this too, and the labels end. */
typedef struct label_block {
  uint32_t id;
  uint32_t previous;
} label_block;

static VALUE block_class;

static void block_free(void *data) {
  sn_labels_abandon(((label_block *)data)->id);
  free(data);
}

static size_t block_size(const void *data) {
  (void)data;
  return sizeof(label_block);
}

static const rb_data_type_t block_type = {
    .wrap_struct_name = "Sonde::Native::LabelBlock",
    .function = {.dmark = NULL, .dfree = block_free, .dsize = block_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

/* labels_enter([key, value, key, value, ...]) -> a LabelBlock. Keys are Strings, values Strings or Integers. */
static VALUE labels_enter(VALUE native, VALUE list) {
  (void)native;
  sn_label_pair pairs[SN_LABELS_MOST];
  uint32_t count = 0;
  SN_EXPECT_TYPE(list, T_ARRAY);
  SN_EXPECT(RARRAY_LEN(list) % 2 == 0 && RARRAY_LEN(list) <= 2 * SN_LABELS_MOST, list, "at most 32 pairs");
  for (long i = 0; i + 1 < RARRAY_LEN(list); i += 2) {
    pairs[count++] = pair_of(RARRAY_AREF(list, i), RARRAY_AREF(list, i + 1));
  }
  label_block *block = calloc(1, sizeof *block);
  if (!block) rb_memerror();
  VALUE self = rb_data_typed_object_wrap(block_class, block, &block_type);
  block->previous = sn_labels_here();
  block->id = sn_labels_enter(pairs, count);
  RB_GC_GUARD(list);
  return self;
}

/* labels_leave(block); a second time it does nothing. */
static VALUE labels_leave(VALUE native, VALUE self) {
  (void)native;
  label_block *block = rb_check_typeddata(self, &block_type);
  const uint32_t id = block->id;
  block->id = 0;
  sn_labels_leave(id, block->previous);
  return Qnil;
}

/* labels_amend(block, key, value) */
static VALUE labels_amend(VALUE native, VALUE self, VALUE key, VALUE value) {
  (void)native;
  const label_block *block = rb_check_typeddata(self, &block_type);
  sn_labels_amend(block->id, pair_of(key, value));
  return Qnil;
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
  block_class = rb_define_class_under(native, "LabelBlock", rb_cObject);
  rb_gc_register_mark_object(block_class);
  rb_undef_alloc_func(block_class);
  rb_undef_method(rb_singleton_class(block_class), "new");
  rb_define_singleton_method(native, "labels_enter", labels_enter, 1);
  rb_define_singleton_method(native, "labels_leave", labels_leave, 1);
  rb_define_singleton_method(native, "labels_amend", labels_amend, 3);
  rb_define_singleton_method(native, "labels_list", labels_list, 0);
}
