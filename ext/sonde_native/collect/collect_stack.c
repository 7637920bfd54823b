/* collect_stack: see the header. Called with the GVL by collect_sample only; one buffer serves all, as only one thread
 * at a time holds the GVL and nothing here gives it up. */
#include "collect_stack.h"

#include <string.h>

#include "../vm/vm_frame.h"

void sn_stack_walk_current(void) {
  sn_vm_stack_read_current(sn_the_engine.stack);
}

void sn_stack_walk(VALUE thread) {
  sn_vm_stack_read(sn_the_engine.stack, thread);
}

static void shift(sn_vm_stack *s, uint32_t to, uint32_t from) {
  uint32_t n = s->length - from;
  memmove(s->frames + to, s->frames + from, n * sizeof s->frames[0]);
  memmove(s->lines + to, s->lines + from, n * sizeof s->lines[0]);
  if (s->has_aux) memmove(s->aux + to, s->aux + from, n * sizeof s->aux[0]);
  s->length = to + n;
}

static void set_frame(sn_vm_stack *s, uint32_t i, uint64_t frame, int32_t line) {
  s->frames[i] = frame;
  s->lines[i] = line;
  s->aux[i] = 0;
}

void sn_stack_drop_own(const char *directory, size_t length) {
  sn_vm_stack *s = sn_the_engine.stack;
  uint32_t own = 0;
  for (uint32_t i = 0; i < s->length; i++) {
    sn_vm_frame_place place = sn_vm_frame_place_of(s->frames[i], directory, length);
    if (place == SN_FRAME_ELSEWHERE) break;
    if (place == SN_FRAME_BELOW) own = i + 1;
  }
  if (own > 0 && own < s->length) shift(s, 0, own);
}

/* A stack deeper than the limit keeps both ends; one visible frame says how many are left out. */
static void fold(sn_vm_stack *s) {
  uint32_t limit = sn_the_engine.max_frames;
  if (s->length <= limit) return;
  uint32_t root = limit / 2;
  uint32_t leaf = limit - root - 1;
  uint32_t omitted = s->length - root - leaf;
  shift(s, leaf + 1, s->length - root);
  set_frame(s, leaf, SN_FRAME_OMITTED, (int32_t)omitted);
  sn_count(&sn_the_engine.counters.truncated_stacks, 1);
}

static void push_gc_frame(sn_vm_stack *s) {
  if (s->length == SN_VM_MAX_FRAMES) s->length--;
  shift(s, 1, 0);
  set_frame(s, 0, SN_FRAME_GC, 0);
}

static uint32_t intern(sn_raw_store *store, const sn_vm_stack *s) {
  return sn_raw_store_stack(store, s->frames, s->has_aux ? s->aux : NULL, s->lines, s->length);
}

uint32_t sn_stack_intern(sn_raw_store *store, bool gc) {
  sn_vm_stack *s = sn_the_engine.stack;
  fold(s);
  if (!gc) return intern(store, s);
  push_gc_frame(s);
  uint32_t id = intern(store, s);
  shift(s, 0, 1);
  return id;
}

uint32_t sn_stack_intern_special(sn_raw_store *store, enum sn_special_frame frame) {
  const uint64_t frames[1] = {(uint64_t)frame};
  const int32_t lines[1] = {0};
  return sn_raw_store_stack(store, frames, NULL, lines, 1);
}
