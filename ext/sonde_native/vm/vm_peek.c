/* vm_peek: see the header. The worker and the signal handler note; the job applies. No lock, no memory of its own. */
#include "vm_peek.h"

#include <string.h>

#include "vm_features.h"
#include "vm_layout.h"
#include "vm_layout_table.h"
#include "vm_read.h"

static bool usable;

bool sn_vm_peek_usable(void) {
  return usable;
}

#ifdef SONDE_TESTING
void sn_vm_peek_testing_use(bool on) {
  usable = on && SN_VM_CAN_PEEK;
}
#endif

/* -- noting -------------------------------------------------------------------------------------------------------- */

typedef struct two_frames {
  uint8_t top[CFP_SIZE], caller[CFP_SIZE];
} two_frames;

static void take_frames(const two_frames *frames, uint64_t cfp, sn_vm_top *top) {
  uintptr_t own = (uintptr_t)frames->top, caller = (uintptr_t)frames->caller;
  *top = (sn_vm_top){.cfp = cfp,
                     .iseq = word_at(own, CFP_ISEQ),
                     .ep = word_at(own, CFP_EP),
                     .caller_iseq = word_at(caller, CFP_ISEQ),
                     .caller_ep = word_at(caller, CFP_EP)};
}

/* Reads the part, then once more where the top frame is: it must not have changed meanwhile. */
static bool read_steadily(uint64_t from, void *to, size_t size, uint64_t ec, uint64_t cfp) {
  uint64_t after = 0;
  struct iovec local[] = {{to, size}, {&after, sizeof after}};
  struct iovec remote[] = {{(void *)(uintptr_t)from, size}, {(void *)(uintptr_t)(ec + EC_CFP), sizeof after}};
  return sn_vm_read_parts(local, remote, 2, size + sizeof after) && after == cfp;
}

/* In one call if the thread still runs in the execution context (fiber) that it was last seen in. */
static bool find_top(uintptr_t thread_struct, uint64_t *known_ec, uint64_t *cfp) {
  uint64_t ec = 0;
  struct iovec local[] = {{&ec, sizeof ec}, {cfp, sizeof *cfp}};
  struct iovec remote[] = {{(void *)(thread_struct + TH_EC), sizeof ec},
                           {(void *)(uintptr_t)(*known_ec + EC_CFP), sizeof *cfp}};
  if (*known_ec && sn_vm_read_parts(local, remote, 2, sizeof ec + sizeof *cfp) && ec == *known_ec) return true;
  if (!sn_vm_read(thread_struct + TH_EC, &ec, sizeof ec)) return false;
  *known_ec = ec;
  return sn_vm_read(ec + EC_CFP, cfp, sizeof *cfp);
}

bool sn_vm_peek_from_outside(uintptr_t thread_struct, uint64_t *known_ec, sn_vm_top *top) {
  uint64_t cfp = 0, slot;
  two_frames frames;
  if (!find_top(thread_struct, known_ec, &cfp)) return false;
  const uint64_t ec = *known_ec;
  if (!read_steadily(cfp, &frames, sizeof frames, ec, cfp)) return false;
  take_frames(&frames, cfp, top);
  if (top->iseq || !top->ep) return true;
  if (!read_steadily(top->ep - 16, &slot, sizeof slot, ec, cfp)) return false;
  top->entry = slot;
  return true;
}

/* Behind a fiber's stack there may be nothing: its last frame has none after it. */
static bool has_caller(uint64_t ec, uint64_t cfp) {
  uint64_t base = word_at(ec, EC_VM_STACK), end = base + word_at(ec, EC_VM_STACK_SIZE) * 8;
  return base && cfp > base && cfp + 2 * CFP_SIZE <= end;
}

bool sn_vm_peek_own(uintptr_t thread_struct, sn_vm_top *top) {
  uint64_t ec = word_at(thread_struct, TH_EC);
  uint64_t cfp = ec ? word_at(ec, EC_CFP) : 0;
  if (!cfp || !has_caller(ec, cfp)) return false;
  take_frames((const two_frames *)(uintptr_t)cfp, cfp, top);
  if (!top->iseq && top->ep) top->entry = word_at(top->ep, -16);
  return true;
}

/* -- applying ------------------------------------------------------------------------------------------------------ */

/* A method entry of a C function, read through the kernel: the word may be anything by now. */
static bool is_c_entry(uint64_t object) {
  uint64_t words[4];
  uint32_t type;
  if (!object || object % 8 != 0 || !sn_vm_read(object, words, sizeof words)) return false;
  bool entry = (words[0] & RUBY_T_MASK) == T_IMEMO && ((words[0] >> 12) & 15) == IMEMO_ENTRY;
  return entry && sn_vm_read(words[2], &type, sizeof type) && (type & 15) == METHOD_C;
}

/* The same of a frame that is there, whose words are sound. */
static bool is_live_c_entry(uint64_t object) {
  if (!object || RB_SPECIAL_CONST_P((VALUE)object) || (word_at(object, 0) & RUBY_T_MASK) != T_IMEMO) return false;
  if (((word_at(object, 0) >> 12) & 15) != IMEMO_ENTRY) return false;
  uint64_t definition = word_at(object, ME_DEFINITION);
  return definition && (*(const uint32_t *)definition & 15) == METHOD_C;
}

/* Whether a walk of the stack shows the frame, which is one of the calling thread's. */
static bool is_shown(uint64_t cfp) {
  uint64_t iseq = word_at(cfp, CFP_ISEQ), ep = word_at(cfp, CFP_EP);
  if (!ep) return false;
  if ((word_at(ep, 0) & FRAME_C) == 0) return iseq && word_at(cfp, CFP_PC);
  return is_live_c_entry(word_at(ep, -16));
}

static bool same_frame(uint64_t cfp, uint64_t iseq, uint64_t ep) {
  return word_at(cfp, CFP_ISEQ) == iseq && word_at(cfp, CFP_EP) == ep;
}

static void cut(sn_vm_stack *stack, uint32_t leading) {
  if (leading == 0 || leading >= stack->length) return;
  uint32_t n = stack->length - leading;
  memmove(stack->frames, stack->frames + leading, n * sizeof stack->frames[0]);
  memmove(stack->lines, stack->lines + leading, n * sizeof stack->lines[0]);
  if (stack->has_aux) memmove(stack->aux, stack->aux + leading, n * sizeof stack->aux[0]);
  stack->length = n;
}

static void put_on_top(sn_vm_stack *stack, uint64_t entry) {
  if (stack->length == SN_VM_MAX_FRAMES) return;
  uint32_t n = stack->length++;
  memmove(stack->frames + 1, stack->frames, n * sizeof stack->frames[0]);
  memmove(stack->lines + 1, stack->lines, n * sizeof stack->lines[0]);
  if (stack->has_aux) memmove(stack->aux + 1, stack->aux, n * sizeof stack->aux[0]);
  stack->frames[0] = entry;
  stack->lines[0] = 0;
  stack->aux[0] = 0;
}

static sn_vm_peek_result cut_above(const sn_vm_top *top, uint64_t cfp, sn_vm_stack *stack) {
  if ((top->cfp - cfp) % CFP_SIZE != 0 || !same_frame(top->cfp, top->iseq, top->ep)) return SN_PEEK_GONE;
  uint32_t later = 0;
  for (; cfp < top->cfp; cfp += CFP_SIZE) later += is_shown(cfp);
  if (!is_shown(top->cfp)) return SN_PEEK_GONE; /* nothing to cut down to */
  cut(stack, later);
  return SN_PEEK_CUT;
}

sn_vm_peek_result sn_vm_peek_apply(const sn_vm_top *top, uintptr_t thread_struct, bool may_add, sn_vm_stack *stack) {
  uint64_t ec = word_at(thread_struct, TH_EC);
  uint64_t cfp = word_at(ec, EC_CFP);
  uint64_t end = word_at(ec, EC_VM_STACK) + word_at(ec, EC_VM_STACK_SIZE) * 8;
  if (top->cfp >= end || top->cfp <= word_at(ec, EC_VM_STACK)) return SN_PEEK_GONE; /* another fiber runs now */
  if (top->cfp == cfp) return same_frame(cfp, top->iseq, top->ep) ? SN_PEEK_SAME : SN_PEEK_GONE;
  if (top->cfp > cfp) return cut_above(top, cfp, stack);
  bool caller_on_top = cfp == top->cfp + CFP_SIZE && same_frame(cfp, top->caller_iseq, top->caller_ep);
  if (!caller_on_top || !may_add || !is_c_entry(top->entry)) return SN_PEEK_GONE;
  put_on_top(stack, top->entry);
  return SN_PEEK_ADDED;
}

/* -- self-test ----------------------------------------------------------------------------------------------------- */

/* What is shown, frame by frame, must be as much as the VM's own walk shows. */
static const char *check_frames(uintptr_t th) {
  sn_vm_stack *stack = ruby_xmalloc(sizeof *stack);
  sn_vm_stack_read_current(stack);
  uint32_t told = stack->length;
  ruby_xfree(stack);
  uint64_t ec = word_at(th, TH_EC), cfp = word_at(ec, EC_CFP);
  uint64_t end = word_at(ec, EC_VM_STACK) + word_at(ec, EC_VM_STACK_SIZE) * 8;
  uint32_t shown = 0;
  for (; cfp + CFP_SIZE < end; cfp += CFP_SIZE) shown += is_shown(cfp);
  return shown == told ? NULL : "control frames do not show what the VM's own walk shows";
}

const char *sn_vm_peek_init(void) {
  if (!SN_VM_CAN_PEEK) return "this Ruby is newer than any whose private words are known";
  uintptr_t th = sn_vm_layout_thread_struct(rb_thread_current());
  const char *problem = sn_vm_layout_check_thread(rb_thread_current());
  if (!problem) problem = check_frames(th);
  sn_vm_top top;
  uint64_t known_ec = 0;
  if (!problem &&
      (!sn_vm_peek_from_outside(th, &known_ec, &top) || sn_vm_peek_apply(&top, th, false, NULL) != SN_PEEK_SAME)) {
    problem = "the top frame cannot be read from outside";
  }
  usable = problem == NULL;
  return problem;
}
