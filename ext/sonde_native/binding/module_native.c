/* Sonde::Native's own functions: running?, status, features, untried. Called by any Ruby thread, with the GVL. */
#include "../collect/collect_alloc.h"
#include "../collect/collect_engine.h"
#include "../collect/collect_heap.h"
#include "../collect/collect_status.h"
#include "../vm/vm_selftest.h"
#include "classes.h"
#include "raise.h"

static VALUE native_running_p(VALUE self) {
  (void)self;
  return sn_engine_running() ? Qtrue : Qfalse;
}

static void put(VALUE hash, const char *key, VALUE value) {
  rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

static VALUE counter(const _Atomic uint64_t *value) {
  return ULL2NUM(atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)value, memory_order_relaxed));
}

static VALUE drops(const sn_engine *e) {
  uint64_t stacks = atomic_load(&((sn_engine *)(uintptr_t)e)->counters.overflowed_stacks);
  uint64_t rows = atomic_load(&((sn_engine *)(uintptr_t)e)->counters.overflowed_rows);
  for (int i = 0; i < 2; i++) {
    stacks += e->recorder.slots[i].store.overflowed_stacks;
    rows += e->recorder.slots[i].store.overflowed_rows;
  }
  VALUE hash = rb_hash_new();
  put(hash, "late", counter(&e->counters.late));
  put(hash, "preempted", counter(&e->counters.preempted));
  put(hash, "contended", counter(&e->counters.contended));
  put(hash, "probes_skipped", counter(&e->counters.probes_skipped));
  put(hash, "captures_lost", counter(&e->counters.captures_lost));
  put(hash, "beside_ractors", counter(&e->counters.beside_ractors));
  put(hash, "copies_put_off", counter(&e->counters.copies_put_off));
  put(hash, "truncated_stacks", counter(&e->counters.truncated_stacks));
  put(hash, "overflowed_stacks", ULL2NUM(stacks));
  put(hash, "overflowed_rows", ULL2NUM(rows));
  put(hash, "labels_overflowed", counter(&e->counters.labels_overflowed));
  put(hash, "slot_busy", counter(&e->recorder.lock_failures));
  put(hash, "threads_refused", ULL2NUM(sn_threads.refused));
  return hash;
}

/* nil while allocations are not watched. */
static VALUE allocations(void) {
  if (!sn_alloc_is_on()) return Qnil;
  sn_alloc_counts counts = sn_alloc_counted();
  VALUE hash = rb_hash_new();
  put(hash, "scheme", ID2SYM(rb_intern(counts.by_count ? "count" : "time")));
  put(hash, "alloc_windows", ULL2NUM(counts.windows));
  put(hash, "alloc_windows_empty", ULL2NUM(counts.empty));
  put(hash, "objects_seen", ULL2NUM(counts.objects));
  put(hash, "objects_picked", ULL2NUM(counts.picks));
  put(hash, "objects_unmeasured", ULL2NUM(counts.unmeasured));
  put(hash, "hook_ns", rb_float_new(counts.hook_ns));
  put(hash, "interval_ms", rb_float_new(counts.interval_ms));
  put(hash, "coin", rb_float_new(counts.coin));
  const char *problem = sn_alloc_problem();
  put(hash, "problem", problem ? rb_str_new_cstr(problem) : Qnil);
  return hash;
}

static VALUE shares(const char *const *names, const double *values, int count) {
  VALUE hash = rb_hash_new();
  for (int i = 0; i < count; i++) rb_hash_aset(hash, rb_str_new_cstr(names[i]), rb_float_new(values[i]));
  return hash;
}

/* nil while living objects are not followed. */
static VALUE living(void) {
  if (!sn_heap_is_on()) return Qnil;
  sn_heap_counts counts = sn_heap_counted();
  VALUE hash = rb_hash_new();
  put(hash, "objects_followed", UINT2NUM(counts.followed));
  put(hash, "taken", rb_float_new(counts.taken));
  put(hash, "objects_died", ULL2NUM(counts.died));
  put(hash, "died_after_collections", shares(sn_heap_age_names, counts.ages, SN_HEAP_AGES));
  put(hash, "died_after_seconds", shares(sn_heap_span_names, counts.spans, SN_HEAP_SPANS));
  return hash;
}

static VALUE native_status(VALUE self) {
  (void)self;
  const sn_engine *e = &sn_the_engine;
  VALUE hash = rb_hash_new();
  put(hash, "running", native_running_p(self));
  put(hash, "windows", UINT2NUM(sn_engine_window_count()));
  put(hash, "rate", rb_float_new(e->base_interval_ns ? 1e9 / (double)e->base_interval_ns : 0.0));
  int64_t interval = atomic_load(&((sn_engine *)(uintptr_t)e)->interval_ns);
  put(hash, "effective_rate", rb_float_new(interval ? 1e9 / (double)interval : 0.0));
  put(hash, "threads", UINT2NUM(atomic_load(&sn_threads.count)));
  put(hash, "instants", counter(&e->counters.instants));
  put(hash, "jobs", counter(&e->counters.jobs));
  put(hash, "samples", counter(&e->counters.samples));
  put(hash, "looks", counter(&e->counters.looks));
  put(hash, "peeked", counter(&e->counters.peeked));
  put(hash, "peek_cut", counter(&e->counters.peek_cut));
  put(hash, "peek_added", counter(&e->counters.peek_added));
  put(hash, "peek_gone", counter(&e->counters.peek_gone));
  put(hash, "stretched", counter(&e->counters.stretched));
  put(hash, "lateness_ns", counter(&e->counters.lateness_ns));
  put(hash, "drops", drops(e));
  put(hash, "allocations", allocations());
  put(hash, "heap", living());
  put(hash, "own_cpu_ns", ULL2NUM(sn_engine_own_cpu_ns()));
  put(hash, "worker_cpu_ns", counter(&e->counters.worker_cpu_ns));
  put(hash, "delivery_cpu_ns", counter(&e->counters.delivery_cpu_ns));
  put(hash, "budget", rb_float_new(atomic_load(&sn_the_engine.budget)));
  put(hash, "longest_pause_ns", counter(&e->counters.longest_pause_ns));
  put(hash, "longest_flush_pause_ns", counter(&e->counters.longest_flush_pause_ns));
  put(hash, "memory_bytes", SIZET2NUM(sn_engine_memory()));
  return hash;
}

/* CPU time, in nanoseconds, that delivering a profile took: it is part of what Sonde costs. */
static VALUE native_count_delivery(VALUE self, VALUE nanoseconds) {
  (void)self;
  SN_EXPECT_TYPE(nanoseconds, T_FIXNUM);
  SN_EXPECT(FIX2LONG(nanoseconds) >= 0, nanoseconds, "0 or more");
  sn_count(&sn_the_engine.counters.delivery_cpu_ns, (uint64_t)FIX2LONG(nanoseconds));
  return Qnil;
}

/* Name of each ability -> nil where it works, else the reason why it does not. */
static VALUE native_features(VALUE self) {
  (void)self;
  VALUE hash = rb_hash_new();
  sn_feature feature;
  for (uint32_t i = 0; sn_engine_feature(i, &feature); i++) {
    rb_hash_aset(hash, rb_str_new_cstr(feature.name), feature.reason ? rb_str_new_cstr(feature.reason) : Qnil);
  }
  return hash;
}

/* nil where Sonde was tried on this Ruby, else a sentence about what follows from that. */
static VALUE native_untried(VALUE self) {
  (void)self;
  const char *sentence = sn_vm_selftest_untried();
  return sentence ? rb_str_new_cstr(sentence) : Qnil;
}

/* True before, false after a forked child is told of, by Sonde::Fork. */
static VALUE native_child_begins(VALUE self, VALUE begins) {
  (void)self;
  sn_engine_child_begins(RTEST(begins));
  return Qnil;
}

void sn_define_module(VALUE native) {
  rb_define_singleton_method(native, "running?", native_running_p, 0);
  rb_define_singleton_method(native, "status", native_status, 0);
  rb_define_singleton_method(native, "count_delivery", native_count_delivery, 1);
  rb_define_singleton_method(native, "features", native_features, 0);
  rb_define_singleton_method(native, "untried", native_untried, 0);
  rb_define_singleton_method(native, "child_begins", native_child_begins, 1);
}
