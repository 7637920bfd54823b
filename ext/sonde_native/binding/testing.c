/* Sonde::Native::Testing: what benchmarks and tests need to see and do inside; only in builds with SONDE_TESTING.
 * Called with the GVL.
 *
 * SONDE_TESTING stands in extconf.h, which ruby.h includes: the core, which does not know ruby.h, is built as it is
 * released. */
#include <ruby.h>

#ifdef SONDE_TESTING

#include <ruby/debug.h>

#include "../collect/collect_alloc.h"
#include "../collect/collect_engine.h"
#include "../collect/collect_heap.h"
#include "../collect/collect_sample.h"
#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_peek.h"
#include "classes.h"
#include "raise.h"

static long times_of(VALUE times) {
  SN_EXPECT_TYPE(times, T_FIXNUM);
  SN_EXPECT(FIX2LONG(times) >= 1, times, "at least 1");
  return FIX2LONG(times);
}

/* As the worker notes an instant (collect_worker.c), without its look at the clocks. */
static void make_due(sn_due *due, int64_t instant, int64_t cpu) {
  enum { ATTEMPTS = 1000, GAP_NS = 10000000 };
  if (!sn_due_try_lock(due, ATTEMPTS)) return;
  due->instant = due->cpu_read_at = instant;
  due->cpu = cpu;
  due->gap = GAP_NS;
  due->native = due->in_gc = due->look = false;
  due->pending = true;
  sn_due_unlock(due);
}

/* Nanoseconds that so many samples of the calling thread take, from the due to the row. A window must be open. */
static VALUE bench_sample(VALUE self, VALUE count) {
  (void)self;
  long times = times_of(count);
  sn_thread *t = sn_engine_running() ? sn_thread_of(rb_thread_current()) : NULL;
  if (!t) rb_raise(sn_error_class, "no window is open, or this thread is unknown");
  int64_t cpu = sn_clock_thread_cpu();
  int64_t began = sn_clock_monotonic();
  for (long i = 0; i < times; i++) {
    make_due(&t->due, began + i, cpu);
    sn_sample_serve(t, SN_SERVE_PLAIN);
  }
  return LL2NUM(sn_clock_monotonic() - began);
}

/* Nanoseconds that so many bare rb_profile_frames of the calling thread's stack take, lines included. */
static VALUE bench_profile_frames(VALUE self, VALUE count) {
  (void)self;
  long times = times_of(count);
  sn_vm_stack *stack = sn_the_engine.stack;
  int64_t began = sn_clock_monotonic();
  for (long i = 0; i < times; i++) rb_profile_frames(0, SN_VM_MAX_FRAMES, (VALUE *)stack->frames, stack->lines);
  return LL2NUM(sn_clock_monotonic() - began);
}

/* Nanoseconds that so many reads of the two clocks take which a sample cannot do without. */
static VALUE bench_clocks(VALUE self, VALUE count) {
  (void)self;
  long times = times_of(count);
  int64_t began = sn_clock_monotonic();
  for (long i = 0; i < times; i++) {
    sn_clock_monotonic();
    sn_clock_thread_cpu();
  }
  return LL2NUM(sn_clock_monotonic() - began);
}

/* Jobs that find a C function on top wait for so many returns of C functions (see vm_events.h); 0: for none. */
static VALUE delay_jobs(VALUE self, VALUE returns) {
  (void)self;
  SN_EXPECT_TYPE(returns, T_FIXNUM);
  SN_EXPECT(FIX2LONG(returns) >= 0 && FIX2LONG(returns) <= 100, returns, "0 to 100");
  sn_vm_events_testing_delay_jobs((uint32_t)FIX2LONG(returns));
  return Qnil;
}

/* Whether the top frame at the instant is looked at, as far as this Ruby allows it. */
static VALUE use_peek(VALUE self, VALUE on) {
  (void)self;
  sn_vm_peek_testing_use(RTEST(on));
  return Qnil;
}

/* Whether allocation windows are by count, as they are beside compiled code; from when they are watched anew. */
static VALUE allocations_by_count(VALUE self, VALUE wanted) {
  (void)self;
  sn_alloc_force_by_count(RTEST(wanted));
  return wanted;
}

/* At most so many living objects are followed. */
static VALUE heap_limit(VALUE self, VALUE limit) {
  (void)self;
  SN_EXPECT_TYPE(limit, T_FIXNUM);
  SN_EXPECT(FIX2LONG(limit) >= 16 && FIX2LONG(limit) <= SN_HEAP_LIMIT, limit, "16 to 8192");
  sn_heap_testing_limit((uint32_t)FIX2LONG(limit));
  return limit;
}

void sn_define_testing(VALUE native) {
  VALUE testing = rb_define_module_under(native, "Testing");
  rb_define_singleton_method(testing, "bench_sample", bench_sample, 1);
  rb_define_singleton_method(testing, "bench_profile_frames", bench_profile_frames, 1);
  rb_define_singleton_method(testing, "bench_clocks", bench_clocks, 1);
  rb_define_singleton_method(testing, "delay_jobs", delay_jobs, 1);
  rb_define_singleton_method(testing, "use_peek", use_peek, 1);
  rb_define_singleton_method(testing, "allocations_by_count=", allocations_by_count, 1);
  rb_define_singleton_method(testing, "heap_limit=", heap_limit, 1);
}

#endif
