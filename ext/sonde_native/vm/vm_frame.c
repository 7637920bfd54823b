/* vm_frame: see the header. Called by the flusher, with the GVL, once for each frame of a window. */
#include "vm_frame.h"

#include <ruby/debug.h>
#include <string.h>

#include "vm_features.h"
#include "vm_layout.h"
#include "vm_layout_table.h"
#include "vm_read.h"

static VALUE no_path, c_path;

void sn_vm_frame_init(void) {
  no_path = rb_str_freeze(rb_str_new_lit("(unknown)"));
  c_path = rb_str_freeze(rb_str_new_lit("<cfunc>"));
  rb_gc_register_mark_object(no_path);
  rb_gc_register_mark_object(c_path);
}

static bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Copies without ":0x0123456789abcdef" after a name, as Ruby writes anonymous classes and objects. */
static size_t copy_without_addresses(char *to, size_t room, const char *from, size_t length) {
  size_t used = 0;
  for (size_t i = 0; i < length && used < room;) {
    if (length - i > 3 && memcmp(from + i, ":0x", 3) == 0 && is_hex(from[i + 3])) {
      i += 3;
      while (i < length && is_hex(from[i])) i++;
    } else {
      to[used++] = from[i++];
    }
  }
  return used;
}

static size_t skip_digits_back(const char *bytes, size_t end) {
  while (end > 0 && is_digit(bytes[end - 1])) end--;
  return end;
}

/* "..._show_html_erb__1234567_8910" (or three underscores, for a negative hash) -> "..._show_html_erb" */
static size_t without_template_suffix(const char *bytes, size_t length) {
  size_t second = skip_digits_back(bytes, length);
  if (second == length || second == 0 || bytes[second - 1] != '_') return length;
  size_t first = skip_digits_back(bytes, second - 1);
  if (first == second - 1 || first < 2 || bytes[first - 1] != '_' || bytes[first - 2] != '_') return length;
  size_t end = first - 2;
  if (end > 0 && bytes[end - 1] == '_') end--;
  return end > 0 ? end : length;
}

static size_t whole_characters(const char *bytes, size_t length, size_t room) {
  if (length < room) return length;
  size_t end = room;
  while (end > 0 && ((unsigned char)bytes[end - 1] & 0xC0) == 0x80) end--;
  return end > 0 && (unsigned char)bytes[end - 1] >= 0xC0 ? end - 1 : room;
}

static void set_name(sn_vm_frame_text *text, const char *bytes, size_t length) {
  size_t used = copy_without_addresses(text->name, sizeof text->name, bytes, length);
  used = whole_characters(text->name, used, sizeof text->name);
  text->name_length = without_template_suffix(text->name, used);
}

static bool is_entry(uint64_t flags) {
  return (flags & RUBY_T_MASK) == T_IMEMO && ((flags >> 12) & 15) == IMEMO_ENTRY;
}

/* When a method is refined, the VM makes its entry one of another kind, of which the accessors tell nothing but the
 * class, and keeps what the entry was in a new one. Answers that one, or the frame itself. What the words hold is only
 * guessed from the table: they are read through the kernel, and must agree with each other. Makes no object. */
static VALUE without_refinement(VALUE frame) {
  if (SN_VM_NEWER_THAN_KNOWN) return frame;
  if (RB_TYPE_P(rb_profile_frame_label(frame), T_STRING)) return frame; /* most frames: nothing is missing */
  uint64_t entry[5], definition[2], original[5];
  if (!sn_vm_read(frame, entry, sizeof entry) || !is_entry(entry[0])) return frame;
  if (!sn_vm_read(entry[ME_DEFINITION / 8], definition, sizeof definition)) return frame;
  if ((definition[0] & 15) != METHOD_REFINED) return frame;
  if (definition[1] % 8 != 0 || !sn_vm_read(definition[1], original, sizeof original)) return frame;
  bool same = is_entry(original[0]) && original[ME_CALLED_ID / 8] == entry[ME_CALLED_ID / 8];
  return same ? (VALUE)definition[1] : frame;
}

typedef struct label_request {
  VALUE frame;
  uint64_t aux;
} label_request;

static VALUE full_label(VALUE data) {
  const label_request *request = (const label_request *)data;
  VALUE frame = request->frame;
  VALUE label = sn_vm_layout_label(frame, request->aux);
  if (!RB_TYPE_P(label, T_STRING)) label = rb_profile_frame_full_label(frame);
  if (!RB_TYPE_P(label, T_STRING)) label = rb_profile_frame_label(frame);
  if (RB_TYPE_P(label, T_STRING)) return label;
  /* A method that was refined after it ran, where without_refinement found nothing. */
  VALUE class_path = rb_profile_frame_classpath(frame);
  if (!RB_TYPE_P(class_path, T_STRING)) return Qnil;
  return rb_sprintf("%" PRIsVALUE "#(refined)", class_path);
}

/* The VM puts names together by a function that raises where one has a zero byte; then the method's own must do. */
static VALUE label_of(VALUE frame, uint64_t aux) {
  int state = 0;
  VALUE before = rb_errinfo();
  const label_request request = {.frame = frame, .aux = aux};
  VALUE label = rb_protect(full_label, (VALUE)&request, &state);
  if (state == 0) return label;
  rb_set_errinfo(before);
  return rb_profile_frame_label(frame);
}

static VALUE path_of(VALUE frame) {
  VALUE path = rb_profile_frame_absolute_path(frame);
  if (!RB_TYPE_P(path, T_STRING)) path = rb_profile_frame_path(frame);
  return RB_TYPE_P(path, T_STRING) && RSTRING_LEN(path) > 0 ? path : Qnil;
}

void sn_vm_frame_describe(uint64_t frame_word, uint64_t aux, sn_vm_frame_text *text) {
  VALUE frame = without_refinement((VALUE)frame_word);
  VALUE label = label_of(frame, aux);
  if (RB_TYPE_P(label, T_STRING) && RSTRING_LEN(label) > 0) {
    set_name(text, RSTRING_PTR(label), (size_t)RSTRING_LEN(label));
  } else {
    set_name(text, "(unnamed)", 9);
  }
  RB_GC_GUARD(label);
  VALUE line = rb_profile_frame_first_lineno(frame);
  text->first_line = RB_FIXNUM_P(line) && FIX2LONG(line) > 0 ? FIX2INT(line) : 0; /* an eval may say -10 */
  VALUE path = path_of(frame);
  text->path = NIL_P(path) ? (text->first_line == 0 ? c_path : no_path) : path;
  RB_GC_GUARD(frame);
}

sn_vm_frame_place sn_vm_frame_place_of(uint64_t frame, const char *directory, size_t length) {
  VALUE path = rb_profile_frame_path((VALUE)frame);
  if (!RB_TYPE_P(path, T_STRING)) return SN_FRAME_WITHOUT_FILE;
  bool below = (size_t)RSTRING_LEN(path) > length && memcmp(RSTRING_PTR(path), directory, length) == 0;
  return below ? SN_FRAME_BELOW : SN_FRAME_ELSEWHERE;
}
