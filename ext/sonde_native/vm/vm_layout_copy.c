/* vm_layout_copy: copies the frames of a thread that does not run, up to Ruby 3.2.
 *
 * Without the GVL the thread may wake up in the middle: all reads go through the kernel, its position is read again
 * at the end, and what was copied is thrown away unless it is the same. What is kept is only interpreted later, with
 * the GVL (vm_layout_walk.c), after it was marked. Called by the worker (through the kernel) and by jobs (with the
 * GVL). No lock, no memory but the caller's and the stack's. */
#include "vm_features.h"

#if !SN_VM_HAS_THREAD_FRAMES

#include <string.h>
#include <sys/uio.h>

#include "vm_layout.h"
#include "vm_layout_table.h"
#include "vm_read.h"

static bool read_parts(sn_vm_access access, const struct iovec *to, const struct iovec *from, uint32_t n, size_t all) {
  if (access == SN_VM_THROUGH_KERNEL) return sn_vm_read_parts(to, from, n, all);
  for (uint32_t i = 0; i < n; i++) memcpy(to[i].iov_base, from[i].iov_base, from[i].iov_len);
  return true;
}

static bool read_part(sn_vm_access access, uint64_t address, void *to, size_t size) {
  if (!address) return false;
  if (access == SN_VM_THROUGH_KERNEL) return sn_vm_read(address, to, size);
  memcpy(to, (const void *)(uintptr_t)address, size);
  return true;
}

typedef struct stack_bounds {
  uint64_t base, size, cfp;
} stack_bounds;

static uint64_t end_of(const stack_bounds *bounds) {
  return bounds->base + bounds->size * 8;
}

static bool plausible(const stack_bounds *bounds) {
  uint64_t end = end_of(bounds);
  return bounds->base && bounds->cfp > bounds->base && bounds->cfp < end && (end - bounds->cfp) % CFP_SIZE == 0;
}

/* In one call if the thread is still in the execution context (fiber) that it was last seen in; *ec: that, or 0. */
static bool read_bounds(sn_vm_access access, uintptr_t thread_struct, uint64_t *ec, stack_bounds *bounds) {
  const uint64_t known = *ec;
  struct iovec to[] = {{ec, 8}, {bounds, sizeof *bounds}};
  struct iovec from[] = {{(void *)(thread_struct + TH_EC), 8}, {(void *)(uintptr_t)known, sizeof *bounds}};
  bool at_once = known && access == SN_VM_THROUGH_KERNEL && read_parts(access, to, from, 2, 8 + sizeof *bounds);
  if (at_once && *ec == known) return plausible(bounds);
  if (!read_part(access, thread_struct + TH_EC, ec, 8)) return false;
  return read_part(access, *ec, bounds, sizeof *bounds) && plausible(bounds);
}

/* A C function on top has no pc of its own: where its caller stands, and the caller's, tells one call from the next.
 * A thread that ran and came back to the same call (a worker that waits for its next job) is told by what its calls
 * have left on the VM stack, around and above the top frame's stack pointer: while it does not run, nobody writes
 * there. */
enum { TOP_FRAMES = 3, TOP_BYTES = TOP_FRAMES * CFP_SIZE, BELOW_SP = 64, TRACE_BYTES = 768 };

static uint64_t hash_words(uint64_t hash, const uint8_t *bytes, size_t length) {
  for (size_t i = 0; i + 8 <= length; i += 8) {
    hash = (hash ^ word_at((uintptr_t)bytes, (int)i)) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
  }
  return hash;
}

static uint64_t hash_stand(const uint8_t *top, uint32_t frames, const uint8_t *trace, uint32_t trace_bytes) {
  return hash_words(hash_words(frames, top, (size_t)frames * CFP_SIZE), trace, trace_bytes);
}

/* The part of the VM stack around sp, inside the stack and below the control frames. */
static void find_trace(const stack_bounds *bounds, uint64_t sp, sn_vm_position *position) {
  uint64_t from = sp - BELOW_SP > bounds->base ? sp - BELOW_SP : bounds->base;
  bool inside = sp >= bounds->base && sp < bounds->cfp && sp % 8 == 0;
  uint64_t room = inside ? bounds->cfp - from : 0;
  position->trace = from;
  position->trace_bytes = (uint32_t)(room < TRACE_BYTES ? room & ~UINT64_C(7) : TRACE_BYTES);
}

/* The upper part of a VM stack, as far as it was read in one go: what is around the top frame's stack pointer, and
 * most environments. */
typedef struct stack_part {
  uint64_t from, to;
  const uint8_t *bytes;
} stack_part;

enum { PART_BYTES = 16384 };

static const uint8_t *in_part(const stack_part *part, uint64_t address, size_t size) {
  bool inside = part->to - part->from >= size && address >= part->from && address <= part->to - size;
  return inside ? part->bytes + (address - part->from) : NULL;
}

static bool read_stack_part(sn_vm_access access, const stack_bounds *bounds, const sn_vm_position *position,
                            stack_part *part) {
  static uint8_t bytes[PART_BYTES]; /* the worker's: nobody else reads through the kernel */
  *part = (stack_part){.bytes = bytes};
  if (access == SN_VM_WITH_GVL || position->trace_bytes == 0) return true;
  part->to = position->trace + position->trace_bytes;
  part->from = part->to - bounds->base > PART_BYTES ? part->to - PART_BYTES : bounds->base;
  return read_part(access, part->from, bytes, part->to - part->from);
}

/* Where the top frames, just read, stand. */
static void describe_position(const stack_part *part, const uint8_t *top, sn_vm_position *position) {
  const uint8_t *trace = in_part(part, position->trace, position->trace_bytes);
  if (!trace) trace = (const uint8_t *)(uintptr_t)position->trace;
  position->hash = hash_stand(top, position->top, trace, position->trace_bytes);
}

/* With the GVL: step by step, as a pointer of the past may lead nowhere by now. */
static bool stands_at(uintptr_t thread_struct, const sn_vm_position *p) {
  uint64_t ec = word_at(thread_struct, TH_EC);
  if (ec != p->ec || word_at(ec, EC_CFP) != p->cfp) return false;
  const uint8_t *top = (const uint8_t *)(uintptr_t)p->cfp;
  return hash_stand(top, p->top, (const uint8_t *)(uintptr_t)p->trace, p->trace_bytes) == p->hash;
}

enum { PARTS = 4 };

typedef struct seen_stand {
  uint64_t ec, cfp;
  uint8_t top[TOP_BYTES];
  uint8_t trace[TRACE_BYTES];
} seen_stand;

/* Where the next pointer will be if the one before has not changed. */
static size_t ask_for(uintptr_t thread_struct, const sn_vm_position *p, seen_stand *seen, struct iovec *to,
                      struct iovec *from) {
  const uintptr_t address[PARTS] = {thread_struct + TH_EC, p->ec + EC_CFP, p->cfp, p->trace};
  void *const place[PARTS] = {&seen->ec, &seen->cfp, seen->top, seen->trace};
  const size_t size[PARTS] = {8, 8, (size_t)p->top * CFP_SIZE, p->trace_bytes};
  size_t all = 0;
  for (int k = 0; k < PARTS; k++) {
    to[k] = (struct iovec){.iov_base = place[k], .iov_len = size[k]};
    from[k] = (struct iovec){.iov_base = (void *)address[k], .iov_len = size[k]};
    all += size[k];
  }
  return all;
}

static void unmoved_through_kernel(const uintptr_t *structs, const sn_vm_position *const *positions, uint32_t n,
                                   bool *unmoved) {
  seen_stand seen[SN_VM_POSITION_BATCH];
  struct iovec local[PARTS * SN_VM_POSITION_BATCH], remote[PARTS * SN_VM_POSITION_BATCH];
  uint32_t parts = 0;
  size_t all = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!positions[i]) continue;
    all += ask_for(structs[i], positions[i], &seen[i], local + parts, remote + parts);
    parts += PARTS;
  }
  if (parts == 0 || !read_parts(SN_VM_THROUGH_KERNEL, local, remote, parts, all)) return;
  for (uint32_t i = 0; i < n; i++) {
    const sn_vm_position *p = positions[i];
    unmoved[i] = p && seen[i].ec == p->ec && seen[i].cfp == p->cfp &&
                 hash_stand(seen[i].top, p->top, seen[i].trace, p->trace_bytes) == p->hash;
  }
}

void sn_vm_layout_unmoved(sn_vm_access access, const uintptr_t *structs, const sn_vm_position *const *positions,
                          uint32_t n, bool *unmoved) {
  for (uint32_t i = 0; i < n; i++) {
    unmoved[i] = access == SN_VM_WITH_GVL && positions[i] && stands_at(structs[i], positions[i]);
  }
  if (access == SN_VM_THROUGH_KERNEL) unmoved_through_kernel(structs, positions, n, unmoved);
}

enum { BATCH = 64 };

/* One frame while its environments are followed outwards. */
typedef struct pending {
  sn_vm_copied_frame *frame;
  uint64_t ep;
} pending;

/* Reads ep[-2], ep[-1], ep[0] of each: what is not in the part, in one go. */
static bool read_environments(sn_vm_access access, const stack_part *part, const pending *list, uint32_t n,
                              uint64_t (*words)[3]) {
  struct iovec local[BATCH], remote[BATCH];
  uint32_t missing = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t *there = in_part(part, list[i].ep - 16, sizeof words[i]);
    if (there) {
      memcpy(words[i], there, sizeof words[i]);
      continue;
    }
    local[missing] = (struct iovec){.iov_base = words[i], .iov_len = sizeof words[i]};
    remote[missing++] = (struct iovec){.iov_base = (void *)(uintptr_t)(list[i].ep - 16), .iov_len = sizeof words[i]};
  }
  return missing == 0 || read_parts(access, local, remote, missing, missing * sizeof words[0]);
}

/* The method slot of the first environment that has one, else of the local one. C functions are told by their first. */
static bool follow_environments(sn_vm_access access, const stack_part *part, pending *list, uint32_t n) {
  enum { DEEPEST_NESTING = 32 };
  uint64_t words[BATCH][3];
  for (int depth = 0; n > 0 && depth < DEEPEST_NESTING; depth++) {
    if (!read_environments(access, part, list, n, words)) return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
      uint64_t flags = words[i][2];
      if (depth == 0 && (flags & FRAME_C)) list[i].frame->iseq = 0;
      list[i].frame->entry = words[i][0];
      uint64_t outer = words[i][1] & ~UINT64_C(3);
      if (words[i][0] || (flags & ENV_LOCAL) || !outer) continue;
      list[kept++] = (pending){.frame = list[i].frame, .ep = outer};
    }
    n = kept;
  }
  return true;
}

static bool copy_batch(sn_vm_access access, const stack_part *part, const uint8_t *raw, sn_vm_copied_frame *frames,
                       uint32_t n) {
  pending list[BATCH];
  uint32_t listed = 0;
  for (uint32_t i = 0; i < n; i++) {
    uintptr_t at = (uintptr_t)raw + (uintptr_t)i * CFP_SIZE;
    frames[i] = (sn_vm_copied_frame){.iseq = word_at(at, CFP_ISEQ), .pc = word_at(at, CFP_PC)};
    if (frames[i].pc == 0) frames[i].iseq = 0;
    if (word_at(at, CFP_EP)) list[listed++] = (pending){.frame = &frames[i], .ep = word_at(at, CFP_EP)};
  }
  return follow_environments(access, part, list, listed);
}

static bool copy_run(sn_vm_access access, const stack_part *part, uint64_t cfp, sn_vm_copied_frame *frames,
                     uint32_t n) {
  uint8_t raw[BATCH * CFP_SIZE];
  for (uint32_t done = 0; done < n;) {
    uint32_t some = n - done < BATCH ? n - done : BATCH;
    if (!read_part(access, cfp + (uint64_t)done * CFP_SIZE, raw, (size_t)some * CFP_SIZE)) return false;
    if (!copy_batch(access, part, raw, frames + done, some)) return false;
    done += some;
  }
  return true;
}

/* The frames after the first ones. */
static bool copy_others(sn_vm_access access, const stack_part *part, uint64_t cfp, uint32_t all, uint32_t first,
                        sn_vm_copied_frame *frames, uint32_t n) {
  uint32_t leaf = all <= n ? n : n / 2;
  uint64_t root = cfp + (uint64_t)(all - (n - leaf)) * CFP_SIZE;
  if (leaf > first && !copy_run(access, part, cfp + (uint64_t)first * CFP_SIZE, frames + first, leaf - first))
    return false;
  return copy_run(access, part, root, frames + leaf, n - leaf);
}

sn_vm_copy_result sn_vm_layout_copy(sn_vm_access access, uintptr_t thread_struct, sn_vm_position *position,
                                    sn_vm_copied_frame *frames, uint32_t room, uint32_t *count, uint32_t *omitted) {
  stack_bounds bounds;
  stack_part part;
  uint8_t top[BATCH * CFP_SIZE];
  if (!read_bounds(access, thread_struct, &position->ec, &bounds)) return SN_VM_COPY_UNREADABLE;
  uint64_t whole = (end_of(&bounds) - bounds.cfp) / CFP_SIZE;
  uint32_t first = whole < BATCH ? (uint32_t)whole : BATCH;
  if (!read_part(access, bounds.cfp, top, (size_t)first * CFP_SIZE)) return SN_VM_COPY_UNREADABLE;
  position->cfp = bounds.cfp;
  position->top = whole < TOP_FRAMES ? (uint32_t)whole : TOP_FRAMES;
  find_trace(&bounds, word_at((uintptr_t)top, CFP_SP), position);
  if (!read_stack_part(access, &bounds, position, &part)) return SN_VM_COPY_UNREADABLE;
  describe_position(&part, top, position);
  uint64_t all = whole - 1; /* not the dummy at the bottom */
  if (all > SN_VM_MAX_FRAMES) return SN_VM_COPY_MOVED;
  uint32_t n = all < room ? (uint32_t)all : room, leaf = all <= room ? n : n / 2;
  if (first > leaf) first = leaf;
  *count = n;
  *omitted = (uint32_t)all - n;
  bool copied = copy_batch(access, &part, top, frames, first) &&
                copy_others(access, &part, bounds.cfp, (uint32_t)all, first, frames, n);
  return copied ? SN_VM_COPY_DONE : SN_VM_COPY_MOVED;
}

#endif
