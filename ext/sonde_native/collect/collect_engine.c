/* collect_engine: see the header. Called by application threads with the GVL; `after_fork_in_child` by the forking
 * thread inside fork, `stop_for_good` at the process's end. Lock order: the flush (collect_flush) is the only one. */
#include "collect_engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_frame.h"
#include "../vm/vm_selftest.h"
#include "../vm/vm_read.h"
#include "../vm/vm_thread.h"
#include "collect_alloc.h"
#include "collect_gc.h"
#include "collect_heap.h"
#include "collect_sample.h"
#include "collect_watch.h"
#include "collect_worker.h"

sn_engine sn_the_engine;

static int64_t forked_at; /* when this process was forked, for such a child */
static bool forked;       /* in a child of a process that was profiled: what was inherited is void */
static bool child_begins; /* such a child has not yet come back from fork */

/* -- start and stop ------------------------------------------------------------------------------------------------ */

static void pause_engine(void) {
  atomic_store(&sn_the_engine.enabled, false);
  sn_worker_stop();
}

static VALUE seed_all(VALUE unused) {
  (void)unused;
  VALUE self = rb_thread_current();
  VALUE list = sn_vm_thread_list();
  for (long i = 0; i < RARRAY_LEN(list); i++) {
    VALUE thread = rb_ary_entry(list, i);
    bool current = thread == self;
    if (!rb_obj_is_kind_of(thread, rb_cThread)) continue;
    sn_sample_seed(thread, current ? sn_os_thread_id() : sn_vm_thread_native_id(thread), current);
  }
  /* Threads run meanwhile. One that ended before it had an entry said so to nobody. */
  for (uint32_t i = 0; i < atomic_load(&sn_threads.count); i++) {
    sn_sample_notice_death(atomic_load(&sn_threads.entries[i]), sn_clock_monotonic());
  }
  RB_GC_GUARD(list);
  return Qnil;
}

static void allow_memory(size_t limit) {
  for (int i = 0; i < 2; i++) sn_the_engine.recorder.slots[i].memory.limit = limit;
}

static void reset_state(const sn_engine_options *options) {
  sn_engine *e = &sn_the_engine;
  sn_recorder_reset(&e->recorder);
  allow_memory(options->memory_limit);
  e->budget = options->budget;
  memset(&e->counters, 0, sizeof e->counters);
  atomic_store(&e->running, NULL);
  atomic_store(&e->suspended_list, NULL); /* before threads are seeded: they go there */
  atomic_store(&e->tick, 0);
  e->generation++;
  e->process_cpu_at_start = e->born_at ? 0 : sn_clock_process_cpu();
  e->cpu_booked = 0;
  e->slot_started = e->born_at ? e->born_at : sn_clock_monotonic();
}

static VALUE begin_collecting(VALUE unused) {
  sn_gc_begin();
  sn_vm_events_enable();
  atomic_store(&sn_the_engine.enabled, true);
  return seed_all(unused);
}

static void stop(void) {
  pause_engine();
  sn_vm_events_disable();
  sn_alloc_end();
  sn_heap_end();
  sn_watch_clear();
  sn_threads_end();
}

/* A child that is profiled from its first moment on gets all of its CPU time: its thread's clock began at zero. By the
 * clock alone this cannot be told: on a busy machine fork takes long. */
static int64_t just_forked_at(void) {
  const int64_t just_now = 50000000;
  if (!forked) return 0;
  return child_begins || sn_clock_monotonic() - forked_at < just_now ? forked_at : 0;
}

void sn_engine_child_begins(bool begins) {
  child_begins = begins && forked;
}

static const char *start(const sn_engine_options *options) {
  sn_the_engine.born_at = just_forked_at();
  if (forked) {
    forked = false;
    sn_vm_thread_after_fork();
  }
  /* What a run left that nobody stopped: its last window was collected, or it was the parent's. */
  sn_watch_clear();
  sn_threads_end();
  sn_threads_begin();
  reset_state(options);
  int raised = 0;
  rb_protect(begin_collecting, Qnil, &raised);
  const char *problem = raised ? NULL : sn_worker_start();
  if (!raised && !problem) return NULL;
  stop();
  if (raised) rb_jump_tag(raised);
  return problem;
}

static const uint32_t SAMPLED_COLUMNS =
    1u << SN_CPU_TIME | 1u << SN_WALL_TIME; /* those that need instants of the worker */
static const uint32_t HEAP_COLUMNS = 1u << SN_HEAP_LIVE_SIZE;
static const uint32_t ALLOC_COLUMNS =
    1u << SN_ALLOC_SAMPLES | 1u << SN_HEAP_LIVE_SIZE; /* what lives is found among what was allocated */

static size_t larger_limit(size_t a, size_t b) {
  if (a == 0 || b == 0) return 0; /* none */
  return a > b ? a : b;
}

/* The union of what all windows ask for. */
static void apply_options(uint32_t max_frames) {
  int64_t interval = INT64_MAX;
  uint32_t columns = 0;
  double budget = 0;
  size_t memory_limit = sn_windows ? sn_windows->memory_limit : 0;
  for (const sn_window *w = sn_windows; w; w = w->next) {
    if (w->interval_ns < interval) interval = w->interval_ns;
    if (w->budget > budget) budget = w->budget;
    memory_limit = larger_limit(memory_limit, w->memory_limit);
    columns |= w->columns;
  }
  if (interval == INT64_MAX) return;
  atomic_store_explicit(&sn_the_engine.samples, (columns & SAMPLED_COLUMNS) != 0, memory_order_release);
  if (!(columns & ALLOC_COLUMNS)) sn_alloc_end();
  if (!(columns & HEAP_COLUMNS)) sn_heap_end();
  sn_worker_wake();
  allow_memory(memory_limit);
  sn_the_engine.budget = budget;
  if (interval != sn_the_engine.base_interval_ns) atomic_store(&sn_the_engine.interval_ns, interval);
  sn_the_engine.base_interval_ns = interval;
  if (max_frames > sn_the_engine.max_frames) sn_the_engine.max_frames = max_frames;
}

/* -- windows ------------------------------------------------------------------------------------------------------- */

static void link_window(sn_window *window) {
  window->open = true;
  window->next = sn_windows;
  sn_windows = window;
}

static void unlink_window(sn_window *window) {
  window->open = false;
  for (sn_window **at = &sn_windows; *at; at = &(*at)->next) {
    if (*at != window) continue;
    *at = window->next;
    return;
  }
}

/* The types that the window's modes ask for, so that a merge takes these and no others. */
static sn_status prepare_profile(sn_window *window) {
  sn_profile *p = sn_profile_new();
  if (!p) return SN_NO_MEMORY;
  window->profile = p;
  sn_status status = SN_OK;
  uint32_t position;
  for (uint32_t i = 0; i < SN_COLUMN_COUNT && status == SN_OK; i++) {
    if (window->columns >> i & 1)
      status = sn_profile_add_type(p, sn_column_names[i].type, sn_column_names[i].unit, &position);
  }
  if (status != SN_OK) return status;
  const sn_column_name *preferred = &sn_column_names[sn_column_preferred(window->columns)];
  status = sn_profile_string(p, preferred->type, strlen(preferred->type), &p->period_type.type);
  if (status == SN_OK) status = sn_profile_string(p, preferred->unit, strlen(preferred->unit), &p->period_type.unit);
  p->default_type = p->period_type.type;
  p->period = window->columns & SAMPLED_COLUMNS ? window->interval_ns : 1;
  p->time_nanos = window->started_real;
  return status;
}

sn_status sn_engine_begin_profile(sn_window *window) {
  window->started = sn_the_engine.slot_started;
  window->started_real = sn_clock_realtime() - (sn_clock_monotonic() - window->started);
  window->failed = SN_OK;
  window->instants = atomic_load(&sn_the_engine.counters.instants);
  memset(&window->alloc, 0, sizeof window->alloc);
  return prepare_profile(window);
}

typedef struct open_request {
  sn_window *window;
  const sn_engine_options *options;
  const char *problem;
} open_request;

static VALUE call_begins(VALUE columns) {
  const char *problem = sn_alloc_begin();
  if (!problem && (uint32_t)columns & HEAP_COLUMNS) problem = sn_heap_begin();
  return (VALUE)problem;
}

/* started: this very call started the engine, which has no window yet. */
static const char *begin_allocations(uint32_t columns, bool started) {
  int raised = 0;
  VALUE problem = rb_protect(call_begins, (VALUE)columns, &raised);
  if (!raised) return (const char *)problem;
  started ? stop() : apply_options(0);
  rb_jump_tag(raised);
}

static VALUE open_body(VALUE data) {
  open_request *request = (open_request *)data;
  sn_window *window = request->window;
  window->columns = request->options->columns;
  window->interval_ns = (int64_t)(1e9 / request->options->rate);
  window->budget = request->options->budget;
  window->memory_limit = request->options->memory_limit;
  bool started = false;
  if (sn_windows) {
    sn_flush(NULL);
  } else {
    sn_the_engine.max_frames = request->options->max_frames;
    sn_the_engine.base_interval_ns = window->interval_ns;
    atomic_store(&sn_the_engine.interval_ns, window->interval_ns);
    request->problem = start(request->options);
    started = !request->problem;
  }
  if (!request->problem && window->columns & ALLOC_COLUMNS) {
    request->problem = begin_allocations(window->columns, started);
  }
  if (!request->problem && sn_engine_begin_profile(window) != SN_OK) request->problem = "no memory for a profile";
  if (request->problem) {
    started ? stop() : apply_options(0);
    return Qnil;
  }
  link_window(window);
  apply_options(request->options->max_frames);
  return Qnil;
}

static void free_window(sn_window *window) {
  sn_profile_free(window->profile);
  free(window);
}

/* Windows whose objects were collected while a flush might have been reading them. */
static void bury_abandoned(void) {
  bool any = false;
  for (sn_window **at = &sn_windows; *at;) {
    sn_window *window = *at;
    if (!window->abandoned) {
      at = &window->next;
      continue;
    }
    *at = window->next;
    free_window(window);
    any = true;
  }
  if (any && !sn_windows) stop();
}

static VALUE end_body(VALUE unused) {
  (void)unused;
  bury_abandoned();
  sn_flush_end();
  return Qnil;
}

const char *sn_engine_open(sn_window *window, const sn_engine_options *options) {
  if (!sn_flush_begin()) return "a flush is under way in this very thread";
  open_request request = {.window = window, .options = options};
  rb_ensure(open_body, (VALUE)&request, end_body, Qnil);
  return request.problem;
}

static VALUE flush_body(VALUE data) {
  sn_window *window = (sn_window *)data;
  if (!window->open) return Qfalse;
  sn_flush(window);
  return Qtrue;
}

bool sn_engine_flush(sn_window *window) {
  if (!sn_flush_begin()) return false;
  return RTEST(rb_ensure(flush_body, (VALUE)window, end_body, Qnil));
}

static VALUE close_end(VALUE data) {
  sn_window *window = (sn_window *)data;
  if (window->open) {
    unlink_window(window);
    if (sn_windows) {
      apply_options(0);
    } else {
      stop();
    }
  }
  bury_abandoned();
  sn_flush_end();
  return Qnil;
}

bool sn_engine_close(sn_window *window) {
  if (!sn_flush_begin()) return false;
  return RTEST(rb_ensure(flush_body, (VALUE)window, close_end, (VALUE)window));
}

void sn_engine_abandon(sn_window *window) {
  if (window->open && sn_flush_is_under_way()) {
    window->abandoned = true;
    return;
  }
  if (window->open) {
    unlink_window(window);
    if (!sn_windows) pause_engine(); /* the hooks stay until the next start; entries too */
  }
  free_window(window);
}

bool sn_engine_running(void) {
  return sn_windows != NULL;
}

/* -- fork and exit ------------------------------------------------------------------------------------------------- */

/* Only plain stores: other threads of the parent may have been anywhere. */
static void after_fork_in_child(void) {
  forked_at = sn_clock_monotonic();
  atomic_store(&sn_the_engine.enabled, false);
  sn_vm_read_after_fork();
  sn_worker_forget();
  sn_watch_forget();
  sn_alloc_forget();
  sn_heap_forget();
  bool torn = sn_flush_is_of_another_thread();
  for (sn_window *w = sn_windows; w; w = w->next) {
    w->open = false;
    if (torn) w->profile = NULL; /* it may be half merged: left to leak */
  }
  sn_windows = NULL;
  sn_flush_forget_others();
  forked = true;
}

static void stop_for_good(VALUE unused) {
  (void)unused;
  pause_engine();
  sn_alloc_end();
}

/* Collected only when the VM goes down, even where no end proc ran: nobody may trigger a job after that. */
static void guard_free(void *unused) {
  (void)unused;
  pause_engine();
}

static const rb_data_type_t guard_type = {
    .wrap_struct_name = "Sonde::Native::Guard",
    .function = {.dmark = NULL, .dfree = guard_free, .dsize = NULL},
};

static void job(void) {
  sn_alloc_job();
  sn_sample_job();
}

const char *sn_engine_init(const char *own_directory, size_t own_directory_length) {
  sn_engine *e = &sn_the_engine;
  e->stack = malloc(sizeof *e->stack);
  if (!e->stack || !sn_threads_init() || sn_recorder_init(&e->recorder, 0) != SN_OK) return "no memory";
  static const sn_vm_callbacks callbacks = {.job = job,
                                            .paused = sn_sample_job,
                                            .resumed = sn_sample_resumed,
                                            .suspended = sn_sample_suspended,
                                            .ready = sn_sample_ready,
                                            .exited = sn_sample_exited,
                                            .begun = sn_sample_begun,
                                            .gc_enter = sn_gc_enter,
                                            .gc_exit = sn_gc_exit};
  const char *problem = sn_vm_thread_init();
  if (problem) return problem;
  problem = sn_vm_selftest_run();
  if (problem) return problem;
  problem = sn_vm_events_init(&callbacks);
  if (problem) return problem;
  sn_vm_frame_init();
  sn_sample_set_own_directory(own_directory, own_directory_length);
  sn_flush_init();
  rb_gc_register_mark_object(rb_data_typed_object_wrap(0, e, &guard_type));
  pthread_atfork(NULL, NULL, after_fork_in_child);
  rb_set_end_proc(stop_for_good, Qnil);
  return NULL;
}
