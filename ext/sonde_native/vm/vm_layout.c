/* vm_layout: see the header. The table itself is in vm_layout_table.h, the walk of a thread that cannot move in
 * vm_layout_walk.c, the copy of one that might in vm_layout_copy.c. Here: where the GVL's owner stands, and the
 * self-test. Called by the loading thread, the worker and the signal handler; takes no lock. */
#include "vm_layout.h"

#include "vm_features.h"
#include "vm_layout_table.h"
#include "vm_read.h"

uintptr_t sn_vm_layout_thread_struct(VALUE thread) {
  return (uintptr_t)RTYPEDDATA_DATA(thread);
}

const char *sn_vm_layout_check_thread(VALUE thread) {
  uintptr_t th = sn_vm_layout_thread_struct(thread);
  uint64_t self, ec, back, stack[3];
  if (!sn_vm_read(th + TH_SELF, &self, 8) || self != (uint64_t)thread)
    return "a Thread's struct is not laid out as known";
  if (!sn_vm_read(th + TH_EC, &ec, 8) || !sn_vm_read(ec + EC_THREAD, &back, 8) || back != th) {
    return "an execution context is not laid out as known";
  }
  if (!sn_vm_read(ec, stack, sizeof stack)) return "a VM stack cannot be read";
  uint64_t end = stack[0] + stack[1] * 8;
  bool inside = stack[2] > stack[0] && stack[2] < end && stack[2] % 8 == 0;
  return inside && (end - stack[2]) % CFP_SIZE == 0 ? NULL : "control frames are not laid out as known";
}

#if SN_VM_HAS_THREAD_FRAMES

const char *sn_vm_layout_init(void) {
  return "not needed on this Ruby";
}
bool sn_vm_layout_usable(void) {
  return false;
}
void sn_vm_layout_walk(sn_vm_stack *stack, VALUE thread) {
  (void)thread;
  stack->length = 0;
}
uintptr_t sn_vm_layout_gvl_owner(void) {
  return 0;
}
pid_t sn_vm_layout_native_id(VALUE thread) {
  (void)thread;
  return 0;
}
bool sn_vm_layout_may_register_job(uintptr_t thread_struct) {
  (void)thread_struct;
  return false;
}
bool sn_vm_layout_has_other_ractors(void) {
  return false;
}
void sn_vm_layout_unmoved(sn_vm_access access, const uintptr_t *structs, const sn_vm_position *const *positions,
                          uint32_t n, bool *unmoved) {
  (void)access, (void)structs, (void)positions;
  for (uint32_t i = 0; i < n; i++) unmoved[i] = false;
}
sn_vm_copy_result sn_vm_layout_copy(sn_vm_access access, uintptr_t thread_struct, sn_vm_position *position,
                                    sn_vm_copied_frame *frames, uint32_t room, uint32_t *count, uint32_t *omitted) {
  (void)access, (void)thread_struct, (void)position, (void)frames, (void)room, (void)count, (void)omitted;
  return SN_VM_COPY_UNREADABLE;
}
void sn_vm_layout_resolve(const sn_vm_copied_frame *frames, uint32_t count, uint32_t omitted, uint64_t omitted_frame,
                          sn_vm_stack *stack) {
  (void)frames, (void)count, (void)omitted, (void)omitted_frame;
  stack->length = 0;
}
VALUE sn_vm_layout_label(VALUE frame, uint64_t aux) {
  (void)frame, (void)aux;
  return Qnil;
}

#else

#include <pthread.h>
#include <ruby/debug.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool usable;
static uintptr_t owner_address; /* of the word that names the GVL's owner */
static bool knows_pthreads;     /* whether a thread's struct holds its pthread_t where the table says */

bool sn_vm_layout_usable(void) {
  return usable;
}

uintptr_t sn_vm_layout_gvl_owner(void) {
  return usable ? __atomic_load_n((const uintptr_t *)owner_address, __ATOMIC_ACQUIRE) : 0;
}

/* The C library does not tell another thread's id, but makes the id of its CPU clock of it (see os_clock.c). */
pid_t sn_vm_layout_native_id(VALUE thread) {
  clockid_t clock;
  if (!usable || !knows_pthreads) return 0;
  pthread_t native = (pthread_t)word_at(sn_vm_layout_thread_struct(thread), TH_PTHREAD);
  if (pthread_getcpuclockid(native, &clock) != 0) return 0;
  return (pid_t)(~(unsigned int)clock >> 3);
}

#if SN_VM_HAS_RACTORS
/* Exported by libruby: the main Ractor until another one is made, then NULL for ever; and the VM. */
extern void *ruby_single_main_ractor;
extern char *ruby_current_vm_ptr __attribute__((weak));
static bool counts_ractors; /* whether the number of Ractors is where the table says */

static void find_ractor_count(void) {
  uint64_t words[VM_MAIN_RACTOR / 8 + 1];
  if (!&ruby_current_vm_ptr || !sn_vm_read((uintptr_t)ruby_current_vm_ptr, words, sizeof words)) return;
  bool one = (uint32_t)words[VM_RACTOR_COUNT / 8] == 1;
  counts_ractors = one && words[VM_MAIN_RACTOR / 8] == (uint64_t)ruby_single_main_ractor;
}

/* While other Ractors run, jobs are on a list that several threads write at once. When they have ended all is well
 * again; only a thread of the main Ractor's, such as the caller, could make another. */
static bool one_ractor(void) {
  if (ruby_single_main_ractor) return true;
  return counts_ractors && *(const volatile uint32_t *)(ruby_current_vm_ptr + VM_RACTOR_COUNT) == 1;
}

static uintptr_t owner_struct(void) {
  return (uintptr_t)ruby_single_main_ractor;
}
#else
extern void *ruby_current_vm_ptr;
static void find_ractor_count(void) {}
static bool one_ractor(void) {
  return true;
}
static uintptr_t owner_struct(void) {
  return (uintptr_t)ruby_current_vm_ptr;
}
#endif

bool sn_vm_layout_may_register_job(uintptr_t thread_struct) {
  uintptr_t ec = (uintptr_t)word_at(thread_struct, TH_EC);
  if (!ec || !one_ractor()) return false;
  return (*(const volatile uint32_t *)(ec + EC_INTERRUPT_MASK) & INTERRUPT_POSTPONED_JOB) == 0;
}

bool sn_vm_layout_has_other_ractors(void) {
  return !one_ractor();
}

/* -- self-test ----------------------------------------------------------------------------------------------------- */

enum { SCAN_BYTES = 1024, SCAN_WORDS = SCAN_BYTES / 8, SCANS = 3 };

/* What the owner's struct looked like while each of three threads held the GVL, and who that was. */
typedef struct scan {
  uintptr_t words[SCANS][SCAN_WORDS];
  uintptr_t running[SCANS];
  bool own_pthread[SCANS];
  uint32_t count;
  const char *problem;
} scan;

static VALUE take_scan(void *data) {
  scan *s = data;
  VALUE thread = rb_thread_current();
  const char *problem = sn_vm_layout_check_thread(thread);
  if (!problem && !sn_vm_read(owner_struct(), s->words[s->count], SCAN_BYTES))
    problem = "the GVL's struct cannot be read";
  if (problem) s->problem = problem;
  pthread_t native = 0;
  if (!SN_VM_HAS_NATIVE_THREAD_ID) sn_vm_read(sn_vm_layout_thread_struct(thread) + TH_PTHREAD, &native, sizeof native);
  s->own_pthread[s->count] = native == pthread_self();
  s->running[s->count++] = sn_vm_layout_thread_struct(thread);
  return Qnil;
}

static bool names_all(const scan *s, int word) {
  for (int k = 0; k < SCANS; k++) {
    if (s->words[k][word] != s->running[k]) return false;
  }
  return true;
}

/* The word that named each thread while it ran: where it is known to stand, else the only one there is. */
static const char *find_owner(const scan *s) {
  int found = -1;
  if (OWNER_KNOWN > 0 && names_all(s, OWNER_KNOWN / 8)) {
    found = OWNER_KNOWN / 8;
  } else {
    for (int i = 0; i < SCAN_WORDS; i++) {
      if (!names_all(s, i)) continue;
      if (found >= 0) return "the GVL's owner cannot be told from another word";
      found = i;
    }
  }
  if (found < 0) return "the GVL's owner was not found";
  owner_address = owner_struct() + (uintptr_t)found * 8;
  return NULL;
}

static const char *scan_threads(void) {
  scan *s = calloc(1, sizeof *s);
  if (!s) return "no memory";
  take_scan(s);
  for (int i = 1; i < SCANS && !s->problem; i++) rb_funcall(rb_thread_create(take_scan, s), rb_intern("join"), 0);
  const char *problem = s->problem ? s->problem : find_owner(s);
  knows_pthreads = !problem && s->own_pthread[0] && s->own_pthread[1] && s->own_pthread[2];
  free(s);
  return problem;
}

/* A frame as the public walk names it: the method for a method's own frame, also where the raw walk has a block's
 * iseq. */
static bool same_frame(const sn_vm_stack *raw, uint32_t i, VALUE frame, int line) {
  if (raw->frames[i] != (uint64_t)frame && raw->aux[i] != (uint64_t)frame) return false;
  return raw->lines[i] == line;
}

/* Frames that only one of the walks shows (see vm_layout_walk.c) are passed over; all that both show must agree. */
static const char *compare_walks(sn_vm_stack *raw, VALUE *frames, int *lines, int count) {
  int agreed = 0, public_at = 0;
  for (uint32_t i = 0; i < raw->length; i++) {
    if (!SN_VM_SHOWS_C_FUNCTIONS && raw->lines[i] == 0) continue;
    while (public_at < count && !same_frame(raw, i, frames[public_at], lines[public_at])) public_at++;
    if (public_at == count) return "a raw walk of the stack differs from the VM's own";
    public_at++;
    agreed++;
  }
  return agreed > 0 && agreed + 8 >= count ? NULL : "a raw walk of the stack misses frames";
}

static const char *check_walk(void) {
  enum { LIMIT = 512 };
  static VALUE frames[LIMIT];
  static int lines[LIMIT];
  sn_vm_stack *raw = malloc(sizeof *raw);
  if (!raw) return "no memory";
  int count = rb_profile_frames(0, LIMIT, frames, lines);
  sn_vm_layout_walk(raw, rb_thread_current());
  if (raw->length > LIMIT) raw->length = (uint32_t)count; /* deep inside a program: the leaf end is enough */
  const char *problem = compare_walks(raw, frames, lines, count);
  free(raw);
  return problem;
}

const char *sn_vm_layout_init(void) {
  if (!owner_struct()) return "more than one Ractor exists already";
  const char *problem = scan_threads();
  if (!problem) problem = check_walk();
  find_ractor_count();
  usable = problem == NULL;
  return problem;
}

#endif
