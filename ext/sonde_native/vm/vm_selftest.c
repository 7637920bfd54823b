/* vm_selftest: see the header. Called by the loading thread, with the GVL, after the other vm files were
 * initialised. */
#include "vm_selftest.h"

#include <ruby/debug.h>
#include <ruby/version.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "vm_events.h"
#include "vm_features.h"
#include "vm_layout.h"
#include "vm_peek.h"
#include "vm_stack.h"
#include "vm_thread.h"

extern const char ruby_version[];

typedef enum test {
  TEST_VERSION,
  TEST_CLOCKS,
  TEST_STACK,
  TEST_LAYOUT,
  TEST_PEEK,
  TEST_GVL_WAIT,
  TEST_GC,
  TEST_COUNT
} test;

static const char *const names[TEST_COUNT] = {
    [TEST_VERSION] = "Ruby version",
    [TEST_CLOCKS] = "CPU clocks of threads",
    [TEST_STACK] = "stack read back",
    [TEST_LAYOUT] = "stacks of other threads",
    [TEST_PEEK] = "top frame at an instant",
    [TEST_GVL_WAIT] = "GVL wait time",
    [TEST_GC] = "exact GC time",
};
static const char *reasons[TEST_COUNT];

static const char *check_version(void) {
  if (strcmp(ruby_version, "3.3.0") == 0) {
    return "Ruby 3.3.0 runs postponed jobs on the main thread only (Bug #20016): use 3.3.1 or later";
  }
  VALUE description = rb_const_get(rb_cObject, rb_intern("RUBY_DESCRIPTION"));
  if (RB_TYPE_P(description, T_STRING) && strstr(StringValueCStr(description), "+MN")) {
    return "RUBY_MN_THREADS lets Ruby's threads share native ones, whose CPU clocks Sonde reads: not supported yet";
  }
  return NULL;
}

static int64_t read_clock(clockid_t clock) {
  struct timespec ts;
  if (clock_gettime(clock, &ts) != 0) return -1;
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The clock id made from our thread's number must be this thread's CPU clock: between two direct readings. */
static const char *check_clocks(void) {
  unsigned int tid = (unsigned int)syscall(SYS_gettid);
  int64_t before = read_clock(CLOCK_THREAD_CPUTIME_ID);
  int64_t by_id = read_clock((clockid_t)((~tid << 3) | 6u));
  int64_t after = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (before < 0) return "the kernel does not tell a thread's CPU time";
  if (by_id < before || by_id > after) return "the kernel's thread clock ids are not as expected";
  return NULL;
}

/* The public walk must agree with caller about how deep we are, give or take the frames only one of them shows. */
static const char *check_stack(void) {
  sn_vm_stack *stack = malloc(sizeof *stack);
  if (!stack) return "no memory";
  sn_vm_stack_read_current(stack);
  uint32_t walked = stack->length;
  free(stack);
  VALUE locations = rb_funcall(rb_mKernel, rb_intern("caller_locations"), 1, INT2FIX(0));
  long told = RB_TYPE_P(locations, T_ARRAY) ? RARRAY_LEN(locations) : 0;
  if (walked == 0 || (long)walked + 8 < told) return "the VM does not show its own stack";
  return NULL;
}

static const char *check_layout(void) {
  if (SN_VM_HAS_THREAD_FRAMES) return NULL;
  return sn_vm_layout_init();
}

static const char *check_gvl_wait(void) {
  return SN_VM_HAS_GVL_EVENTS ? NULL : "Ruby tells of threads that wait for the GVL from 3.3 on";
}

static const char *check_gc(void) {
  if (SN_VM_HAS_CHEAP_GC_HOOKS || SN_VM_HAS_GC_TOTAL_TIME) return NULL;
  return "Ruby keeps no exact GC time before 3.1; the shares of the collector are sampled";
}

const char *sn_vm_selftest_run(void) {
  reasons[TEST_VERSION] = check_version();
  reasons[TEST_CLOCKS] = check_clocks();
  reasons[TEST_LAYOUT] = check_layout();
  reasons[TEST_STACK] = check_stack();
  reasons[TEST_PEEK] = sn_vm_peek_init();
  reasons[TEST_GVL_WAIT] = check_gvl_wait();
  reasons[TEST_GC] = check_gc();
  const test needed[] = {TEST_VERSION, TEST_CLOCKS, TEST_STACK};
  for (size_t i = 0; i < SN_ARRAY_LENGTH(needed); i++) {
    if (reasons[needed[i]]) return reasons[needed[i]];
  }
  return NULL;
}

const char *sn_vm_selftest_untried(void) {
  if (SN_VM_NEWER_THAN_KNOWN) return "untested: newer than any Ruby that Sonde was tried on; only public API is used";
  return NULL;
}

bool sn_vm_selftest_result(uint32_t number, const char **name, const char **reason) {
  if (number >= TEST_COUNT) return false;
  *name = names[number];
  *reason = reasons[number];
  return true;
}
