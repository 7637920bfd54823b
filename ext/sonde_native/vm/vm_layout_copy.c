/* vm_layout_copy: copies the frames of a thread that does not run, up to Ruby 3.2, without the GVL and through the
 * kernel.
 *
 * The thread may wake up in the middle: its position is read again at the end, and what was copied is thrown away
 * unless it is the same. What is kept is only interpreted later, with the GVL (vm_layout_walk.c), after it was marked.
 * Called by the worker only; the scratch memory is its own. */
#define _GNU_SOURCE
#include "vm_layout_copy.h"

#include "vm_features.h"

#if !SN_VM_HAS_THREAD_FRAMES

#include <sys/uio.h>
#include <unistd.h>

#include "vm_layout.h"
#include "vm_layout_table.h"

bool sn_vm_read(uintptr_t address, void *to, size_t size) {
  struct iovec local = {.iov_base = to, .iov_len = size};
  struct iovec remote = {.iov_base = (void *)address, .iov_len = size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

typedef struct stack_bounds {
  uint64_t base, size, cfp;
} stack_bounds;

static bool read_bounds(uintptr_t thread_struct, uint64_t *ec, stack_bounds *bounds) {
  if (!sn_vm_read(thread_struct + TH_EC, ec, 8) || !*ec) return false;
  if (!sn_vm_read(*ec, bounds, sizeof *bounds) || !bounds->base) return false;
  uint64_t end = bounds->base + bounds->size * 8;
  return bounds->cfp > bounds->base && bounds->cfp < end && (end - bounds->cfp) % CFP_SIZE == 0;
}

/* A C function on top has no pc of its own: where its caller stands, and the caller's, tells one call from the next. */
enum { TOP_FRAMES = 3, TOP_BYTES = TOP_FRAMES * CFP_SIZE };

static uint64_t hash_frames(const uint8_t *bytes, uint32_t frames) {
  uint64_t hash = frames;
  for (uint32_t i = 0; i < frames; i++) {
    uintptr_t at = (uintptr_t)bytes + (uintptr_t)i * CFP_SIZE;
    const uint64_t words[] = {word_at(at, CFP_PC), word_at(at, CFP_ISEQ), word_at(at, CFP_EP)};
    for (size_t k = 0; k < 3; k++) {
      hash = (hash ^ words[k]) * UINT64_C(0x9E3779B97F4A7C15);
      hash ^= hash >> 29;
    }
  }
  return hash;
}

bool sn_vm_layout_position(uintptr_t thread_struct, sn_vm_position *position) {
  stack_bounds bounds;
  uint8_t top[TOP_BYTES];
  if (!read_bounds(thread_struct, &position->ec, &bounds)) return false;
  uint64_t frames = (bounds.base + bounds.size * 8 - bounds.cfp) / CFP_SIZE;
  position->cfp = bounds.cfp;
  position->top = frames < TOP_FRAMES ? (uint32_t)frames : TOP_FRAMES;
  if (!sn_vm_read(bounds.cfp, top, (size_t)position->top * CFP_SIZE)) return false;
  position->frames = hash_frames(top, position->top);
  return true;
}

void sn_vm_layout_unmoved(const uintptr_t *structs, const sn_vm_position *const *positions, uint32_t n, bool *unmoved) {
  static struct {
    uint64_t ec, cfp;
    uint8_t top[TOP_BYTES];
  } seen[SN_VM_POSITION_BATCH];
  struct iovec local[3 * SN_VM_POSITION_BATCH], remote[3 * SN_VM_POSITION_BATCH];
  uint32_t parts = 0;
  size_t wanted = 0;
  for (uint32_t i = 0; i < n; i++) {
    const sn_vm_position *p = positions[i];
    unmoved[i] = false;
    if (!p) continue;
    /* Where the next pointer will be, if the one before has not changed. */
    const uintptr_t from[] = {structs[i] + TH_EC, p->ec + EC_CFP, p->cfp};
    void *const to[] = {&seen[i].ec, &seen[i].cfp, seen[i].top};
    const size_t size[] = {8, 8, (size_t)p->top * CFP_SIZE};
    for (int k = 0; k < 3; k++) {
      local[parts] = (struct iovec){.iov_base = to[k], .iov_len = size[k]};
      remote[parts++] = (struct iovec){.iov_base = (void *)from[k], .iov_len = size[k]};
      wanted += size[k];
    }
  }
  if (parts == 0 || process_vm_readv(getpid(), local, parts, remote, parts, 0) != (ssize_t)wanted) return;
  for (uint32_t i = 0; i < n; i++) {
    const sn_vm_position *p = positions[i];
    unmoved[i] = p && seen[i].ec == p->ec && seen[i].cfp == p->cfp && hash_frames(seen[i].top, p->top) == p->frames;
  }
}

enum { BATCH = 64 };

/* One frame while its environments are followed outwards. */
typedef struct pending {
  sn_vm_copied_frame *frame;
  uint64_t ep;
} pending;

/* Reads ep[-2], ep[-1], ep[0] of each in one call. */
static bool read_environments(const pending *list, uint32_t n, uint64_t (*words)[3]) {
  struct iovec local[BATCH], remote[BATCH];
  for (uint32_t i = 0; i < n; i++) {
    local[i] = (struct iovec){.iov_base = words[i], .iov_len = sizeof words[i]};
    remote[i] = (struct iovec){.iov_base = (void *)(uintptr_t)(list[i].ep - 16), .iov_len = sizeof words[i]};
  }
  return process_vm_readv(getpid(), local, n, remote, n, 0) == (ssize_t)(n * sizeof words[0]);
}

/* The method slot of the first environment that has one, else of the local one. C functions are told by their first. */
static bool follow_environments(pending *list, uint32_t n) {
  enum { DEEPEST_NESTING = 32 };
  uint64_t words[BATCH][3];
  for (int depth = 0; n > 0 && depth < DEEPEST_NESTING; depth++) {
    if (!read_environments(list, n, words)) return false;
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

static bool copy_run(uint64_t cfp, sn_vm_copied_frame *frames, uint32_t n) {
  static uint8_t scratch[BATCH * CFP_SIZE];
  for (uint32_t done = 0; done < n;) {
    uint32_t some = n - done < BATCH ? n - done : BATCH;
    if (!sn_vm_read(cfp + (uint64_t)done * CFP_SIZE, scratch, (size_t)some * CFP_SIZE)) return false;
    pending list[BATCH];
    uint32_t listed = 0;
    for (uint32_t i = 0; i < some; i++) {
      uintptr_t at = (uintptr_t)scratch + (uintptr_t)i * CFP_SIZE;
      sn_vm_copied_frame *frame = &frames[done + i];
      *frame = (sn_vm_copied_frame){.iseq = word_at(at, CFP_ISEQ), .pc = word_at(at, CFP_PC)};
      if (frame->pc == 0) frame->iseq = 0;
      if (word_at(at, CFP_EP)) list[listed++] = (pending){.frame = frame, .ep = word_at(at, CFP_EP)};
    }
    if (!follow_environments(list, listed)) return false;
    done += some;
  }
  return true;
}

bool sn_vm_layout_copy(uintptr_t thread_struct, const sn_vm_position *position, sn_vm_copied_frame *frames,
                       uint32_t room, uint32_t *count, uint32_t *omitted) {
  uint64_t ec;
  stack_bounds bounds;
  if (!read_bounds(thread_struct, &ec, &bounds) || ec != position->ec || bounds.cfp != position->cfp) return false;
  uint64_t all = (bounds.base + bounds.size * 8 - bounds.cfp) / CFP_SIZE - 1; /* not the dummy at the bottom */
  if (all > SN_VM_MAX_FRAMES) return false;
  uint32_t n = all < room ? (uint32_t)all : room;
  uint32_t leaf = all <= room ? n : n / 2;
  *count = n;
  *omitted = (uint32_t)all - n;
  uint64_t root = bounds.cfp + (all - (n - leaf)) * CFP_SIZE;
  if (!copy_run(bounds.cfp, frames, leaf) || !copy_run(root, frames + leaf, n - leaf)) return false;
  bool unmoved;
  sn_vm_layout_unmoved(&thread_struct, &position, 1, &unmoved);
  return unmoved && sn_vm_layout_gvl_owner() != thread_struct;
}

#else

bool sn_vm_read(uintptr_t address, void *to, size_t size) {
  (void)address, (void)to, (void)size;
  return false;
}

#endif
