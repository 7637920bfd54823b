/* collect_flush: see the header. Called by the thread that opens, flushes or closes a window, in ordinary Ruby context.
 * The list of windows and everything static here belongs to the GVL, but for `work`, which its flush owns. */
#include "collect_flush.h"

#include <ruby/encoding.h>
#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>

#include "../core/profile_merge.h"
#include "../core/raw_convert.h"
#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_frame.h"
#include "../vm/vm_gc.h"
#include "../vm/vm_object.h"
#include "../vm/vm_thread.h"
#include "collect_alloc.h"
#include "collect_debt.h"
#include "collect_gc.h"
#include "collect_labels.h"
#include "collect_heap.h"
#include "collect_sample.h"
#include "collect_stack.h"
#include "collect_watch.h"

sn_window *sn_windows;

typedef struct thread_note {
  VALUE thread;
  uint32_t number;
  uint32_t fallback, fallback_labels;
  int64_t cpu_time;
  pid_t tid;
  uint32_t name; /* string id in the profile */
} thread_note;

/* One flush's state; there is one flush at a time. */
typedef struct flush_work {
  const sn_window *picture_for;
  sn_raw_store *store; /* flipped, locked; NULL before and after */
  thread_note *threads;
  uint32_t thread_count;
  int64_t gc_time;
  sn_alloc_result alloc;
  int64_t started_real, duration;
  sn_profile profile;
  bool has_profile;
  uint32_t *locations;
  uint32_t location_capacity;
  uint32_t next_location;
  sn_detail_labels *details;
  uint32_t next_detail;
  sn_thread_summary *summaries;
  char (*ids)[24];
  uint32_t *label_sets;
  sn_status status;
} flush_work;

static flush_work work;
static VALUE flushing_thread = Qfalse;

sn_profile *sn_profile_new(void) {
  sn_profile *profile = malloc(sizeof *profile);
  if (profile && sn_profile_init(profile, 0) == SN_OK) return profile;
  free(profile);
  return NULL;
}

void sn_profile_free(sn_profile *profile) {
  if (!profile) return;
  sn_profile_destroy(profile);
  free(profile);
}

/* -- marking: frames of both slots, threads of the registry, threads of the flush ---------------------------------- */

static void mark_store(const sn_raw_store *store) {
  uint32_t count = atomic_load_explicit(&store->location_count, memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    const sn_raw_location *location = &store->locations[i];
    if (location->frame < SN_FRAME_FIRST_REAL) continue;
    rb_gc_mark((VALUE)location->frame);
    if (location->aux) rb_gc_mark((VALUE)location->aux);
  }
}

static void mark_details(const sn_detail_table *table) {
  uint32_t count = atomic_load_explicit(&table->count, memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    const sn_raw_detail *detail = &table->details[i];
    bool is_class = detail->kind == SN_DETAIL_CLASS || detail->kind == SN_DETAIL_LIVE;
    if (is_class && detail->word >= SN_VM_FIRST_CLASS) rb_gc_mark((VALUE)detail->word);
  }
}

static void mark_all(void *unused) {
  (void)unused;
  for (int i = 0; i < 2; i++) {
    mark_store(&sn_the_engine.recorder.slots[i].store);
    mark_details(&sn_the_engine.recorder.slots[i].store.details);
  }
  sn_alloc_mark();
  sn_heap_mark();
  sn_threads_mark();
  sn_watch_mark();
  for (uint32_t i = 0; i < work.thread_count; i++) rb_gc_mark(work.threads[i].thread);
  rb_gc_mark(flushing_thread);
}

/* Not write-barrier protected on purpose: the VM then marks it again at the end of an incremental marking, so frames
 * may be added at any time. rb_gc_mark pins: the tables are keyed by address. */
static const rb_data_type_t marker_type = {
    .wrap_struct_name = "Sonde::Native::Marker",
    .function = {.dmark = mark_all, .dfree = NULL, .dsize = NULL},
};

void sn_flush_init(void) {
  VALUE marker = rb_data_typed_object_wrap(0, &work, &marker_type);
  rb_gc_register_mark_object(marker);
}

/* -- one flush at a time ------------------------------------------------------------------------------------------- */

/* Those who wait, in the order in which they came, on their own stacks: a thread that flushes in a loop must not keep
 * others out. */
typedef struct waiter {
  VALUE thread;
  struct waiter *next;
} waiter;

static waiter *first_waiter;

static bool is_my_turn(const waiter *me) {
  if (flushing_thread != Qfalse) return false;
  for (const waiter *w = first_waiter; w && w != me; w = w->next) {
    if (w->thread != me->thread) return false; /* own ones: this is a signal handler that interrupted the wait */
  }
  return true;
}

static VALUE wait_for_turn(VALUE data) {
  while (!is_my_turn((const waiter *)data)) rb_thread_wait_for((struct timeval){.tv_sec = 0, .tv_usec = 500});
  flushing_thread = rb_thread_current();
  return Qtrue;
}

static VALUE stop_waiting(VALUE data) {
  for (waiter **at = &first_waiter; *at; at = &(*at)->next) {
    if (*at != (waiter *)data) continue;
    *at = (*at)->next;
    break;
  }
  return Qnil;
}

bool sn_flush_begin(void) {
  waiter me = {.thread = rb_thread_current()};
  if (flushing_thread == me.thread) return false;
  waiter **end = &first_waiter;
  while (*end) end = &(*end)->next;
  *end = &me;
  rb_ensure(wait_for_turn, (VALUE)&me, stop_waiting, (VALUE)&me);
  return true;
}

void sn_flush_end(void) {
  flushing_thread = Qfalse;
}

void sn_flush_forget_others(void) {
  first_waiter = NULL;
  if (sn_flush_is_of_another_thread()) flushing_thread = Qfalse;
}

bool sn_flush_is_under_way(void) {
  return flushing_thread != Qfalse;
}

bool sn_flush_is_of_another_thread(void) {
  return flushing_thread != Qfalse && flushing_thread != rb_thread_current();
}

/* -- step 1: settle and flip --------------------------------------------------------------------------------------- */

static void settle_entry(sn_thread *t, VALUE self, int64_t now) {
  thread_note *note = &work.threads[work.thread_count];
  uint32_t fallback = 0, labels = 0;
  pid_t tid = atomic_load(&t->tid);
  *note = (thread_note){.thread = t->thread, .number = t->number, .tid = tid};
  note->cpu_time = sn_sample_settle(t, now, t->thread == self, &fallback, &labels);
  note->fallback = fallback;
  note->fallback_labels = labels;
  work.thread_count++;
}

static bool may_release(const sn_thread *t) {
  return atomic_load_explicit(&t->phase, memory_order_acquire) == SN_PHASE_DEAD &&
         !atomic_load_explicit(&t->listed, memory_order_acquire);
}

static void settle_all(int64_t now) {
  VALUE self = rb_thread_current();
  uint32_t i = 0;
  while (i < atomic_load(&sn_threads.count)) {
    sn_thread *t = atomic_load(&sn_threads.entries[i]);
    settle_entry(t, self, now);
    if (may_release(t)) {
      sn_thread_release(t); /* the last entry moves here */
    } else {
      i++;
    }
  }
}

static int by_number(const void *a, const void *b) {
  uint32_t x = ((const thread_note *)a)->number, y = ((const thread_note *)b)->number;
  return (x > y) - (x < y);
}

/* Sonde's own thread is part of what the process used, and of what a profile shows. */
static void settle_worker(void) {
  sn_engine *e = &sn_the_engine;
  int64_t cpu;
  pid_t tid = atomic_load(&e->worker_tid);
  if (!sn_clock_cpu_of(tid, &cpu)) return;
  sn_raw_store *store = sn_recorder_enter(&e->recorder);
  if (!store) return;
  uint32_t stack = sn_stack_intern_special(store, SN_FRAME_SAMPLER);
  work.threads[work.thread_count++] = (thread_note){
      .thread = Qfalse, .number = UINT32_MAX, .fallback = stack, .cpu_time = cpu - e->worker_cpu_flushed, .tid = tid};
  e->worker_cpu_flushed = cpu;
  sn_recorder_leave(&e->recorder, store);
}

/* CPU of the process that no thread known has used: threads of native libraries, and what Ruby's own threads burn
 * before their first and after their last event. What was booked late makes up for what stood here before, so the sum
 * is right in the long run; less than a millisecond waits for the next flush. */
static void settle_rest(void) {
  const int64_t worth_a_row = 1000000;
  sn_engine *e = &sn_the_engine;
  for (uint32_t i = 0; i < work.thread_count; i++) {
    if (work.threads[i].cpu_time > 0) e->cpu_booked += work.threads[i].cpu_time;
  }
  int64_t rest = sn_clock_process_cpu() - e->process_cpu_at_start - e->cpu_booked;
  sn_raw_store *store = rest >= worth_a_row ? sn_recorder_enter(&e->recorder) : NULL;
  if (!store) return;
  uint32_t stack = sn_stack_intern_special(store, SN_FRAME_NATIVE);
  work.threads[work.thread_count++] =
      (thread_note){.thread = Qnil, .number = UINT32_MAX - 1, .fallback = stack, .cpu_time = rest};
  e->cpu_booked += rest;
  sn_recorder_leave(&e->recorder, store);
}

/* Before anything is settled: it lets other threads run, and threads begin. Entries only go at flushes. */
static void notice_deaths(void) {
  if (sn_vm_events_has_gvl_events()) return;
  for (uint32_t i = 0; i < atomic_load(&sn_threads.count); i++) {
    sn_sample_notice_death(atomic_load(&sn_threads.entries[i]), sn_clock_monotonic());
  }
}

/* Once it has begun to settle, nothing here runs Ruby code or gives the GVL up. */
static void settle_and_flip(void) {
  sn_engine *e = &sn_the_engine;
  notice_deaths();
  int64_t gc_total = sn_vm_events_gc_total_time(); /* before anything is settled: it may raise */
  sn_alloc_look_around();                          /* likewise */
  if (work.picture_for) sn_heap_look();
  uint32_t room = atomic_load(&sn_threads.count);
  work.threads = calloc(room + 2, sizeof *work.threads);
  if (!work.threads) rb_memerror();
  int64_t now = sn_clock_monotonic();
  sn_watch_drain();
  settle_all(now);
  settle_worker();
  settle_rest();
  work.gc_time = sn_gc_settle(gc_total);
  work.alloc = sn_alloc_settle();
  if (sn_alloc_is_on()) sn_debt_settle(work.gc_time);
  if (work.picture_for) sn_heap_settle();
  work.duration = now - e->slot_started;
  work.started_real = sn_clock_realtime() - work.duration;
  e->slot_started = now;
  e->generation++;
  work.store = sn_recorder_flip(&e->recorder);
  sn_count_max(&e->counters.longest_flush_pause_ns, (uint64_t)(sn_clock_monotonic() - now));
  qsort(work.threads, work.thread_count, sizeof *work.threads, by_number);
}

/* -- step 2: names ------------------------------------------------------------------------------------------------- */

static sn_status intern_string(VALUE string, uint32_t *id) {
  return sn_profile_string(&work.profile, RSTRING_PTR(string), (size_t)RSTRING_LEN(string), id);
}

static const char *special_name(const sn_raw_location *location, char *buffer, size_t size) {
  switch (location->frame) {
    case SN_FRAME_OVERFLOW:
      return "(overflow)";
    case SN_FRAME_NATIVE:
      return "(native code)";
    case SN_FRAME_NOT_SAMPLED:
      return "(not sampled)";
    case SN_FRAME_GC:
      return "(garbage collection)";
    case SN_FRAME_SAMPLER:
      return "(sonde)";
    case SN_FRAME_OMITTED:
      snprintf(buffer, size, location->line == 1 ? "(1 frame omitted)" : "(%d frames omitted)", (int)location->line);
      return buffer;
    default:
      return "(unknown)";
  }
}

static sn_status add_location(const char *name, size_t length, uint32_t file, int64_t first_line, int64_t line,
                              uint32_t *id) {
  sn_function function = {.filename = file, .start_line = first_line};
  sn_status status = sn_profile_string(&work.profile, name, length, &function.name);
  sn_location location = {.line = line};
  if (status == SN_OK) status = sn_profile_function(&work.profile, function, &location.function);
  if (status == SN_OK) status = sn_profile_location(&work.profile, location, id);
  return status;
}

static sn_status name_special(const sn_raw_location *location, uint32_t *id) {
  char buffer[40];
  const char *name = special_name(location, buffer, sizeof buffer);
  return add_location(name, strlen(name), 0, 0, 0, id);
}

static sn_status name_location(const sn_raw_location *location, uint32_t *id) {
  if (location->frame < SN_FRAME_FIRST_REAL) return name_special(location, id);
  sn_vm_frame_text text;
  sn_vm_frame_describe(location->frame, location->aux, &text);
  uint32_t file;
  sn_status status = intern_string(text.path, &file);
  /* The VM knows no line for a top frame entered from compiled code: the method's first one is true at least. */
  int64_t line = location->line > 0 ? location->line : text.first_line;
  if (status == SN_OK) status = add_location(text.name, text.name_length, file, text.first_line, line, id);
  RB_GC_GUARD(text.path);
  return status;
}

enum { NAMES_IN_A_BATCH = 128 };

static void name_some(void) {
  uint32_t count = atomic_load(&work.store->location_count);
  uint32_t end = work.next_location + NAMES_IN_A_BATCH < count ? work.next_location + NAMES_IN_A_BATCH : count;
  while (work.next_location < end && work.status == SN_OK) {
    uint32_t i = work.next_location;
    work.status = name_location(&work.store->locations[i], &work.locations[i]);
    work.next_location++;
  }
}

static void name_frames(void) {
  uint32_t count = atomic_load(&work.store->location_count);
  if (!work.locations) work.locations = calloc(count ? count : 1, sizeof *work.locations);
  if (!work.locations) rb_memerror();
  while (work.next_location < count && work.status == SN_OK) {
    name_some();
    if (work.next_location < count) rb_thread_schedule();
  }
}

static sn_status text_label(sn_detail_labels *detail, const char *key, VALUE value) {
  sn_label *label = &detail->labels[detail->count++];
  *label = (sn_label){.key = 0};
  sn_status status = sn_profile_string(&work.profile, key, strlen(key), &label->key);
  return status == SN_OK ? intern_string(value, &label->str) : status;
}

static sn_status constant_label(sn_detail_labels *detail, const char *key, const char *text) {
  sn_label *label = &detail->labels[detail->count++];
  *label = (sn_label){.key = 0};
  sn_status status = sn_profile_string(&work.profile, key, strlen(key), &label->key);
  return status == SN_OK ? sn_profile_string(&work.profile, text, strlen(text), &label->str) : status;
}

static sn_status number_label(sn_detail_labels *detail, const char *key, int64_t number) {
  sn_label *label = &detail->labels[detail->count++];
  *label = (sn_label){.num = number};
  return sn_profile_string(&work.profile, key, strlen(key), &label->key);
}

static sn_status name_collection(const sn_raw_detail *detail, sn_detail_labels *labels) {
  sn_status status = constant_label(labels, "gc cause", sn_vm_gc_cause((uint32_t)detail->word));
  return status == SN_OK ? constant_label(labels, "gc type", sn_vm_gc_type(detail->number)) : status;
}

static sn_status name_detail(const sn_raw_detail *detail, sn_detail_labels *labels) {
  labels->count = 0;
  if (detail->kind == SN_DETAIL_GC) return name_collection(detail, labels);
  if (detail->kind != SN_DETAIL_CLASS && detail->kind != SN_DETAIL_LIVE) return SN_OK;
  VALUE name = sn_vm_object_class_name(detail->word);
  sn_status status = text_label(labels, "allocation class", name);
  RB_GC_GUARD(name);
  if (detail->kind != SN_DETAIL_LIVE || status != SN_OK) return status;
  return number_label(labels, "gc gen age", detail->number);
}

static void name_details(void) {
  const sn_detail_table *table = &work.store->details;
  uint32_t count = atomic_load(&table->count);
  if (!work.details) work.details = calloc(count, sizeof *work.details);
  if (!work.details) rb_memerror();
  while (work.next_detail < count && work.status == SN_OK) {
    work.status = name_detail(&table->details[work.next_detail], &work.details[work.next_detail]);
    work.next_detail++;
    if (work.next_detail % NAMES_IN_A_BATCH == 0) rb_thread_schedule();
  }
}

static VALUE name_of(VALUE thread) {
  if (thread == Qfalse) return rb_str_new_lit("sonde");
  if (thread == Qnil) return rb_str_new_lit("other threads");
  return sn_vm_thread_name(thread);
}

static void name_threads(void) {
  for (uint32_t i = 0; i < work.thread_count && work.status == SN_OK; i++) {
    VALUE thread = work.threads[i].thread;
    VALUE name = name_of(thread);
    work.status = intern_string(name, &work.threads[i].name);
    RB_GC_GUARD(name);
  }
}

/* -- step 3: rows to samples --------------------------------------------------------------------------------------- */

static sn_status fill_summaries(void) {
  work.summaries = calloc(work.thread_count ? work.thread_count : 1, sizeof *work.summaries);
  work.ids = calloc(work.thread_count ? work.thread_count : 1, sizeof *work.ids);
  if (!work.summaries || !work.ids) return SN_NO_MEMORY;
  for (uint32_t i = 0; i < work.thread_count; i++) {
    const thread_note *note = &work.threads[i];
    sn_thread_summary *s = &work.summaries[i];
    s->number = note->number;
    s->fallback_stack = note->fallback;
    s->fallback_labels = note->fallback_labels;
    s->cpu_time = note->cpu_time;
    s->id = work.ids[i];
    s->id_length = (size_t)snprintf(work.ids[i], sizeof work.ids[i], "%d", (int)note->tid);
    s->name = sn_string_table_get(&work.profile.strings, note->name, &s->name_length);
  }
  return SN_OK;
}

static uint32_t all_columns(void) {
  uint32_t columns = 0;
  for (const sn_window *w = sn_windows; w; w = w->next) columns |= w->columns;
  return columns;
}

static sn_status convert(uint32_t columns) {
  sn_status status = fill_summaries();
  if (status != SN_OK) return status;
  uint32_t label_set_count;
  status = sn_labels_convert(work.store, &work.profile, &work.label_sets, &label_set_count);
  if (status != SN_OK) return status;
  sn_convert_input input = {.store = work.store,
                            .locations = work.locations,
                            .threads = work.summaries,
                            .thread_count = work.thread_count,
                            .details = work.details,
                            .label_sets = work.label_sets,
                            .label_set_count = label_set_count,
                            .columns = columns,
                            .alloc_total = work.alloc.total,
                            .gc_time = work.gc_time};
  return sn_raw_convert(&input, &work.profile);
}

typedef struct merge_request {
  uint32_t columns;
  sn_window *windows; /* nobody opens or closes one during a flush */
} merge_request;

static void merge_into(sn_window *window) {
  if (window->failed != SN_OK || !window->profile) return;
  sn_alloc_error_add(&window->alloc, &work.alloc.error);
  window->failed = sn_profile_merge(window->profile, &work.profile, NULL, 0);
}

static void clear_picture(void) {
  const sn_column columns[] = {SN_HEAP_LIVE_SAMPLES, SN_HEAP_LIVE_SIZE};
  sn_profile *p = &work.profile;
  for (size_t i = 0; i < SN_ARRAY_LENGTH(columns); i++) {
    const int position = sn_profile_find_type(p, sn_column_names[columns[i]].type);
    if (position < 0) continue;
    for (size_t k = 0; k < p->sample_count; k++) p->values[k * p->type_count + (size_t)position] = 0;
  }
}

static void *convert_and_merge(void *data) {
  merge_request *request = data;
  work.status = convert(request->columns);
  if (work.status != SN_OK) return NULL;
  work.profile.time_nanos = work.started_real;
  work.profile.duration_nanos = work.duration;
  for (sn_window *w = request->windows; w; w = w->next) {
    if (w == work.picture_for) merge_into(w);
  }
  clear_picture();
  for (sn_window *w = request->windows; w; w = w->next) {
    if (w != work.picture_for) merge_into(w);
  }
  return request; /* not NULL: it ran */
}

/* The VM refuses to let go of the GVL while an interrupt is pending that may not be served yet; then the work is done
 * with it. */
static void without_gvl(void *(*function)(void *), void *data) {
  enum { TRIES = 3 };
  for (int i = 0; i < TRIES; i++) {
    if (rb_thread_call_without_gvl2(function, data, NULL, NULL)) return;
    if (work.status != SN_OK) return;
  }
  function(data);
}

/* -- all of it ----------------------------------------------------------------------------------------------------- */

/* The samples of this flush are lost: every window says so. */
static void say_failed(void) {
  for (sn_window *w = sn_windows; w; w = w->next) {
    if (w->failed == SN_OK) w->failed = work.status;
  }
}

static VALUE name_all(VALUE unused) {
  (void)unused;
  if (work.status == SN_OK) name_frames();
  if (work.status == SN_OK) name_details();
  if (work.status == SN_OK) name_threads();
  return Qnil;
}

/* Ruby code may run meanwhile, and a signal handler of the program may raise: what has no name yet gets it all the
 * same, so that no window loses this flush. Answers the tag to go on with afterwards, or 0. */
static int name_in_any_case(void) {
  enum { TRIES = 100 };
  int raised = 0, last = 0;
  for (int i = 0; i < TRIES; i++) {
    rb_protect(name_all, Qnil, &raised);
    if (!raised) return last;
    last = raised;
  }
  work.status = SN_NO_MEMORY; /* nothing else fails so often */
  return last;
}

static VALUE run_flush(VALUE unused) {
  (void)unused;
  settle_and_flip();
  work.status = sn_profile_init(&work.profile, 0);
  work.has_profile = work.status == SN_OK;
  int raised = name_in_any_case();
  merge_request request = {.columns = all_columns(), .windows = sn_windows};
  if (work.status == SN_OK) without_gvl(convert_and_merge, &request);
  if (work.status != SN_OK) say_failed();
  if (raised) rb_jump_tag(raised);
  return Qnil;
}

static void release_store(void) {
  sn_engine *e = &sn_the_engine;
  sn_count(&e->counters.overflowed_stacks, work.store->overflowed_stacks);
  sn_count(&e->counters.overflowed_rows, work.store->overflowed_rows);
  sn_recorder_release(&e->recorder, work.store);
  sn_labels_release(e->generation);
}

static VALUE end_flush(VALUE unused) {
  (void)unused;
  if (work.has_profile) sn_profile_destroy(&work.profile);
  if (work.store) release_store();
  free(work.threads);
  free(work.locations);
  free(work.details);
  free(work.summaries);
  free(work.ids);
  free(work.label_sets);
  memset(&work, 0, sizeof work);
  return Qnil;
}

void sn_flush(const sn_window *picture_for) {
  memset(&work, 0, sizeof work);
  work.picture_for = picture_for && picture_for->columns >> SN_HEAP_LIVE_SIZE & 1 ? picture_for : NULL;
  rb_ensure(run_flush, Qnil, end_flush, Qnil);
}
