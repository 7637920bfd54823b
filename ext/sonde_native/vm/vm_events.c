/* vm_events: see the header. Installed by the loading thread; callbacks run where the header says. No lock of our
 * own. */
#include "vm_events.h"

#include <ruby/debug.h>
#include <ruby/thread.h>

#include "vm_features.h"
#include "vm_layout.h"
#include "vm_peek.h"

/* Exported by every Ruby and declared by all: whether the collector is at work. */
int rb_during_gc(void);

static sn_vm_callbacks callbacks;

#ifdef SONDE_TESTING

static uint32_t returns_wanted, returns_missing;

static void on_c_return(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) {
  (void)event, (void)data, (void)self, (void)id, (void)klass;
  if (returns_missing > 0 && --returns_missing == 0) callbacks.job();
}

void sn_vm_events_testing_delay_jobs(uint32_t returns) {
  if (returns_wanted > 0) rb_remove_event_hook(on_c_return);
  if (returns > 0) rb_add_event_hook(on_c_return, RUBY_EVENT_C_RETURN, Qnil);
  returns_wanted = returns;
  returns_missing = 0;
}

static bool must_wait(void) {
  sn_vm_top top;
  if (returns_wanted == 0 || !sn_vm_peek_own(sn_vm_layout_thread_struct(rb_thread_current()), &top)) return false;
  if (top.iseq) return false;
  returns_missing = returns_wanted;
  return true;
}

#else

static bool must_wait(void) {
  return false;
}

#endif

static void run_job(void *unused) {
  (void)unused;
  if (!must_wait()) callbacks.job();
}

#if SN_VM_HAS_TRIGGERED_JOBS

static rb_postponed_job_handle_t job_handle;

static const char *jobs_init(void) {
  job_handle = rb_postponed_job_preregister(0, run_job, NULL);
  return job_handle == POSTPONED_JOB_HANDLE_INVALID ? "no postponed job is left in this process" : NULL;
}

void sn_vm_events_trigger_job(void) {
  rb_postponed_job_trigger(job_handle);
}

void sn_vm_events_job_from_handler(uintptr_t thread_struct) {
  (void)thread_struct;
}

bool sn_vm_events_needs_signal(void) {
  return false;
}

#else

static const char *jobs_init(void) {
  return NULL;
}

void sn_vm_events_trigger_job(void) {}

void sn_vm_events_job_from_handler(uintptr_t thread_struct) {
  if (sn_vm_layout_gvl_owner() != thread_struct || !sn_vm_layout_may_register_job(thread_struct)) return;
  rb_postponed_job_register_one(0, run_job, NULL);
}

bool sn_vm_events_needs_signal(void) {
  return true;
}

#endif

#if SN_VM_HAS_GVL_EVENTS

static void on_gvl_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused) {
  (void)unused;
  switch (event) {
    case RUBY_INTERNAL_THREAD_EVENT_READY:
      callbacks.ready(data->thread);
      break;
    case RUBY_INTERNAL_THREAD_EVENT_RESUMED:
      callbacks.resumed(data->thread);
      break;
    case RUBY_INTERNAL_THREAD_EVENT_SUSPENDED:
      callbacks.suspended(data->thread);
      break;
    case RUBY_INTERNAL_THREAD_EVENT_EXITED:
      callbacks.exited(data->thread);
      break;
    default:
      break;
  }
}

static const char *gvl_events_init(void) {
  const rb_event_flag_t wanted = RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                 RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_EXITED;
  return rb_internal_thread_add_event_hook(on_gvl_event, wanted, NULL) ? NULL : "the VM refuses GVL events";
}

/* A native thread that begins names itself as the one that runs before it has the GVL, and a trigger reaches it, not
 * the one that has: until the next switch, up to 100 ms later. While somebody waits for the GVL the VM stops who has it
 * every 10 ms, here. */
static void on_switch(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) {
  (void)event, (void)data, (void)self, (void)id, (void)klass;
  if (!must_wait()) callbacks.paused();
}

static void thread_hooks_enable(void) {
  rb_add_event_hook(on_switch, RUBY_INTERNAL_EVENT_SWITCH, Qnil);
}
static void thread_hooks_disable(void) {
  rb_remove_event_hook(on_switch);
}

#else

static void on_thread_event(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) {
  (void)data, (void)self, (void)id, (void)klass;
  event == RUBY_EVENT_THREAD_BEGIN ? callbacks.begun(rb_thread_current()) : callbacks.exited(rb_thread_current());
}

static const char *gvl_events_init(void) {
  return NULL;
}

static void thread_hooks_enable(void) {
  rb_add_event_hook(on_thread_event, RUBY_EVENT_THREAD_BEGIN | RUBY_EVENT_THREAD_END, Qnil);
}
static void thread_hooks_disable(void) {
  rb_remove_event_hook(on_thread_event);
}

#endif

#if SN_VM_HAS_CHEAP_GC_HOOKS

/* Not a TracePoint: those are objects, which the VM frees at its end while a hook enabled by a finalizer may still
 * fire. */
static void on_gc_event(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) {
  (void)data, (void)self, (void)id, (void)klass;
  event == RUBY_INTERNAL_EVENT_GC_ENTER ? callbacks.gc_enter() : callbacks.gc_exit();
}

static void gc_hooks_enable(void) {
  rb_add_event_hook(on_gc_event, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, Qnil);
}
static void gc_hooks_disable(void) {
  rb_remove_event_hook(on_gc_event);
}

#else

static void gc_hooks_enable(void) {}
static void gc_hooks_disable(void) {}

#endif

static VALUE gc_total_time; /* GC.total_time as it is at load: the program may redefine it */

static void gc_total_time_init(void) {
  if (!SN_VM_HAS_GC_TOTAL_TIME) return;
  gc_total_time = rb_obj_method(rb_mGC, ID2SYM(rb_intern("total_time")));
  rb_gc_register_mark_object(gc_total_time);
}

const char *sn_vm_events_init(const sn_vm_callbacks *wanted) {
  callbacks = *wanted;
  gc_total_time_init();
  const char *problem = jobs_init();
  return problem ? problem : gvl_events_init();
}

bool sn_vm_events_has_gvl_events(void) {
  return SN_VM_HAS_GVL_EVENTS;
}

bool sn_vm_events_has_gc_hooks(void) {
  return SN_VM_HAS_CHEAP_GC_HOOKS;
}

static bool enabled; /* a hook added twice fires twice */

void sn_vm_events_enable(void) {
  if (enabled) return;
  thread_hooks_enable();
  gc_hooks_enable();
  enabled = true;
}

void sn_vm_events_disable(void) {
  if (!enabled) return;
  enabled = false;
  thread_hooks_disable();
  gc_hooks_disable();
}

bool sn_vm_events_during_gc(void) {
  return rb_during_gc() != 0;
}

uint64_t sn_vm_events_gc_count(void) {
  return rb_gc_count();
}

int64_t sn_vm_events_gc_total_time(void) {
  if (!SN_VM_HAS_GC_TOTAL_TIME) return -1;
  return NUM2LL(rb_method_call(0, NULL, gc_total_time));
}

static void (*fiber_switched)(void);

static void on_fiber_switch(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE class) {
  (void)event, (void)data, (void)self, (void)id, (void)class;
  fiber_switched();
}

void sn_vm_events_watch_fibers(void (*switched)(void)) {
  fiber_switched = switched;
  rb_add_event_hook(on_fiber_switch, RUBY_EVENT_FIBER_SWITCH, Qnil);
}
