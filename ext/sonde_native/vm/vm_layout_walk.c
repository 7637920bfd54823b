/* vm_layout_walk: a raw walk of a thread that cannot move, up to Ruby 3.2, and the names of what it finds.
 *
 * It shows what rb_profile_frames shows, frame by frame, with three differences: blocks are told apart from their
 * methods (the frame is the block's iseq, aux its method); C functions are there on 2.7 too; dummy frames (the bottom
 * one of each thread, and those that load and require push) are left out, as later Rubies do. Called with the GVL
 * (jobs, flushes). No lock, no object, but for labels. */
#include "vm_features.h"

#if !SN_VM_HAS_THREAD_FRAMES

#include <ruby.h>
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>

#include "vm_layout.h"
#include "vm_layout_table.h"
#include "vm_read.h"

/* Exported by libruby, not declared. A bit vector look-up; the position must be inside the iseq. */
unsigned int rb_iseq_line_no(const void *iseq, size_t position);
VALUE rb_id2str(ID id);

/* Of the first word of an object: what it is, and for a VM-internal one (T_IMEMO) of which kind. */
enum {
  KIND_MASK = RUBY_T_MASK | 15 << 12,
  KIND_ENTRY = T_IMEMO | IMEMO_ENTRY << 12,
  KIND_SVAR = T_IMEMO | IMEMO_SVAR << 12
};

/* 0 for what is no object. */
static inline uint64_t kind_of(uint64_t object) {
  return object && !RB_SPECIAL_CONST_P((VALUE)object) ? word_at(object, 0) & KIND_MASK : 0;
}

static inline bool is_imemo(uint64_t object) {
  return (kind_of(object) & RUBY_T_MASK) == T_IMEMO;
}

/* What an environment's method slot holds -> method entry, or 0. */
static inline uint64_t entry_of(uint64_t object) {
  uint64_t kind = kind_of(object);
  if (SN_LIKELY(kind == KIND_ENTRY)) return object;
  if (kind != KIND_SVAR) return 0;
  object = word_at(object, SVAR_ENTRY);
  return kind_of(object) == KIND_ENTRY ? object : 0;
}

static inline unsigned method_type(uint64_t entry) {
  uint64_t definition = word_at(entry, ME_DEFINITION);
  return definition ? *(const uint32_t *)definition & 15 : 15;
}

/* ep[0]: flags, ep[-1]: the surrounding environment, ep[-2]: method slot. */
static inline uint64_t entry_of_frame(uint64_t ep) {
  enum { DEEPEST_NESTING = 256 };
  for (int i = 0; i < DEEPEST_NESTING; i++) {
    uint64_t entry = entry_of(word_at(ep, -16));
    if (entry || (word_at(ep, 0) & ENV_LOCAL)) return entry;
    ep = word_at(ep, -8) & ~UINT64_C(3);
    if (!ep) return 0;
  }
  return 0;
}

/* 0 where pc is not inside the iseq: compiled code may leave an old one in the top frame. */
static inline int32_t line_of(uint64_t iseq, uint64_t body, uint64_t pc) {
  uint64_t encoded = word_at(body, BODY_ENCODED);
  uint32_t size = *(const uint32_t *)(body + BODY_SIZE);
  uint64_t position = (pc - encoded) / 8;
  if (pc < encoded || position > size) return 0;
  return (int32_t)rb_iseq_line_no((const void *)iseq, position > 0 ? position - 1 : 0);
}

/* Type 1 of an iseq is a method body; others inside a method are blocks, rescues and the like. */
static inline bool is_method_body(uint64_t body) {
  return *(const uint32_t *)body == 1;
}

static inline void put(sn_vm_stack *stack, uint32_t at, uint64_t frame, uint64_t aux, int32_t line) {
  stack->frames[at] = frame;
  stack->aux[at] = aux;
  stack->lines[at] = line;
}

/* Puts a frame at that place, unless it is none that is shown. Returns the next place. */
static inline uint32_t put_frame(sn_vm_stack *stack, uint32_t at, uint64_t iseq, uint64_t pc, uint64_t entry) {
  unsigned type = entry ? method_type(entry) : 15;
  if (!iseq) {
    if (type != METHOD_C) return at;
    put(stack, at, entry, 0, 0);
    return at + 1;
  }
  uint64_t body = word_at(iseq, ISEQ_BODY);
  bool own = type == METHOD_ISEQ && is_method_body(body);
  put(stack, at, own ? entry : iseq, own ? 0 : entry, line_of(iseq, body, pc));
  return at + 1;
}

/* The length stays local: the compiler may not assume that the frames do not overlap with it. */
static uint32_t walk(sn_vm_stack *stack, uint64_t cfp, uint64_t end) {
  uint32_t n = 0;
  for (; cfp + CFP_SIZE < end && n < SN_VM_MAX_FRAMES; cfp += CFP_SIZE) {
    uint64_t ep = word_at(cfp, CFP_EP);
    if (!ep) continue;
    if (word_at(ep, 0) & FRAME_C) {
      n = put_frame(stack, n, 0, 0, entry_of_frame(ep));
      continue;
    }
    uint64_t iseq = word_at(cfp, CFP_ISEQ), pc = word_at(cfp, CFP_PC);
    if (pc && is_imemo(iseq)) n = put_frame(stack, n, iseq, pc, entry_of_frame(ep));
  }
  return n;
}

void sn_vm_layout_walk(sn_vm_stack *stack, VALUE thread) {
  stack->length = 0;
  stack->has_aux = true;
  uintptr_t th = sn_vm_layout_thread_struct(thread);
  uint64_t ec = th ? word_at(th, TH_EC) : 0;
  if (!ec) return;
  uint64_t base = word_at(ec, EC_VM_STACK), cfp = word_at(ec, EC_CFP);
  uint64_t end = base + word_at(ec, EC_VM_STACK_SIZE) * 8;
  if (base && cfp > base && cfp < end) stack->length = walk(stack, cfp, end);
}

void sn_vm_layout_resolve(const sn_vm_copied_frame *frames, uint32_t count, uint32_t omitted, uint64_t omitted_frame,
                          sn_vm_stack *stack) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < count && n < SN_VM_MAX_FRAMES - 1; i++) {
    if (omitted && i == count / 2) put(stack, n++, omitted_frame, 0, (int32_t)omitted);
    if (frames[i].iseq && !is_imemo(frames[i].iseq)) continue;
    n = put_frame(stack, n, frames[i].iseq, frames[i].pc, entry_of(frames[i].entry));
  }
  stack->length = n;
  stack->has_aux = true;
}

/* -- names --------------------------------------------------------------------------------------------------------- */

/* "Mo::K#name" or "Mo::K.name", for entries whose name the public accessors do not tell. */
static VALUE name_of_entry(VALUE entry) {
  VALUE class_path = rb_profile_frame_classpath(entry);
  VALUE name = rb_id2str((ID)word_at((uint64_t)entry, ME_CALLED_ID));
  if (!RB_TYPE_P(name, T_STRING)) return Qnil;
  if (!RB_TYPE_P(class_path, T_STRING)) return name;
  const char *separator = RTEST(rb_profile_frame_singleton_method_p(entry)) ? "." : "#";
  return rb_sprintf("%" PRIsVALUE "%s%" PRIsVALUE, class_path, separator, name);
}

static VALUE name_of_method(VALUE entry) {
  VALUE name = rb_profile_frame_qualified_method_name(entry);
  return RB_TYPE_P(name, T_STRING) ? name : name_of_entry(entry);
}

/* The code of a method that define_method made, or 0. Its Proc is only guessed from the table, hence read through the
 * kernel until it is known to be one. */
static VALUE body_of_entry(uint64_t entry) {
  uint64_t definition[2], header, block[3];
  if (method_type(entry) != METHOD_BLOCK) return 0;
  if (!sn_vm_read(word_at(entry, ME_DEFINITION), definition, sizeof definition)) return 0;
  if (definition[1] % 8 != 0 || !sn_vm_read(definition[1], &header, sizeof header)) return 0;
  if ((header & RUBY_T_MASK) != T_DATA || !RTEST(rb_obj_is_proc((VALUE)definition[1]))) return 0;
  if (!sn_vm_read((uintptr_t)RTYPEDDATA_DATA((VALUE)definition[1]), block, sizeof block)) return 0;
  return is_imemo(block[2]) ? (VALUE)block[2] : 0; /* self, environment, code */
}

/* What stands before the name in a label, such as "rescue in block (2 levels) in " */
typedef struct label_prefix {
  char before[256]; /* "rescue in " */
  long levels;      /* 2; 0: not in a block */
} label_prefix;

static bool prefix_of(VALUE iseq, label_prefix *prefix) {
  VALUE label = rb_profile_frame_label(iseq), base = rb_profile_frame_base_label(iseq);
  if (!RB_TYPE_P(label, T_STRING) || !RB_TYPE_P(base, T_STRING)) return false;
  long length = RSTRING_LEN(label) - RSTRING_LEN(base);
  if (length < 0 || length >= (long)sizeof prefix->before) return false;
  memcpy(prefix->before, RSTRING_PTR(label), (size_t)length);
  prefix->before[length] = 0;
  char *block = strstr(prefix->before, "block ");
  prefix->levels = block ? 1 : 0;
  if (!block) return true;
  if (block[6] == '(') prefix->levels = strtol(block + 7, NULL, 10);
  *block = 0;
  return prefix->levels > 0;
}

/* "block in name" -> "block in Mo::K#name". The body of a define_method is a block, but named as the method it is, and
 * blocks in it are counted from there. */
static VALUE label_of_block(VALUE iseq, VALUE entry) {
  label_prefix prefix, own;
  VALUE name = name_of_method(entry);
  if (!RB_TYPE_P(name, T_STRING) || !prefix_of(iseq, &prefix)) return Qnil;
  VALUE body = body_of_entry((uint64_t)entry);
  if (body && prefix_of(body, &own) && own.levels <= prefix.levels) prefix.levels -= own.levels;
  if (prefix.levels == 0) return rb_sprintf("%s%" PRIsVALUE, prefix.before, name);
  if (prefix.levels == 1) return rb_sprintf("%sblock in %" PRIsVALUE, prefix.before, name);
  return rb_sprintf("%sblock (%ld levels) in %" PRIsVALUE, prefix.before, prefix.levels, name);
}

VALUE sn_vm_layout_label(VALUE frame, uint64_t aux) {
  if (!sn_vm_layout_usable()) return Qnil;
  if (aux) return label_of_block(frame, (VALUE)aux);
  if (kind_of((uint64_t)frame) == KIND_ENTRY && method_type((uint64_t)frame) == METHOD_C) return name_of_method(frame);
  return Qnil;
}

#endif
