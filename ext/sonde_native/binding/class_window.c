/* Sonde::Native::Window: a consumer of samples, from open to close. Methods are called by any Ruby thread, with the
 * GVL; a flush gives it up while it works (collect_flush). */
#include <ruby/encoding.h>
#include <stdlib.h>
#include <string.h>

#include "../collect/collect_alloc.h"
#include "../collect/collect_budget.h"
#include "../collect/collect_engine.h"
#include "../collect/collect_heap.h"
#include "../collect/collect_status.h"
#include "../os/os_clock.h"
#include "classes.h"
#include "raise.h"

static VALUE window_class;

static void window_free(void *data) {
  sn_engine_abandon(data);
}

static size_t window_size(const void *data) {
  const sn_window *window = data;
  return sizeof *window + (window->profile ? atomic_load(&window->profile->memory.used) : 0);
}

static const rb_data_type_t window_type = {
    .wrap_struct_name = "Sonde::Native::Window",
    .function = {.dmark = NULL, .dfree = window_free, .dsize = window_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static sn_window *get(VALUE self) {
  return rb_check_typeddata(self, &window_type);
}

/* -- options ------------------------------------------------------------------------------------------------------- */

static uint32_t columns_of_mode(VALUE mode) {
  SN_EXPECT_TYPE(mode, T_SYMBOL);
  const uint32_t common = 1u << SN_GC_TIME;
  if (mode == ID2SYM(rb_intern("cpu"))) return common | 1u << SN_CPU_TIME | 1u << SN_CPU_SAMPLES;
  if (mode == ID2SYM(rb_intern("wall"))) {
    uint32_t gvl = sn_engine_measures_gvl_wait() ? 1u << SN_GVL_WAIT_TIME : 0;
    return common | gvl | 1u << SN_WALL_TIME | 1u << SN_WALL_SAMPLES;
  }
  if (mode == ID2SYM(rb_intern("alloc"))) {
    return 1u << SN_ALLOC_SAMPLES | 1u << SN_ALLOC_SAMPLES_UNSCALED | 1u << SN_ALLOC_SIZE | 1u << SN_GC_DEBT_TIME;
  }
  if (mode == ID2SYM(rb_intern("heap"))) return 1u << SN_HEAP_LIVE_SAMPLES | 1u << SN_HEAP_LIVE_SIZE;
  SN_EXPECT(false, mode, ":cpu, :wall, :alloc or :heap");
  return 0;
}

static uint32_t columns_of_modes(VALUE modes) {
  SN_EXPECT_TYPE(modes, T_ARRAY);
  SN_EXPECT(RARRAY_LEN(modes) > 0, modes, "an Array of at least one mode");
  uint32_t columns = 0;
  for (long i = 0; i < RARRAY_LEN(modes); i++) columns |= columns_of_mode(RARRAY_AREF(modes, i));
  return columns;
}

static double budget_of(VALUE budget) {
  if (NIL_P(budget)) return SN_DEFAULT_BUDGET;
  SN_EXPECT(RB_FLOAT_TYPE_P(budget) || RB_FIXNUM_P(budget), budget, "a Float or an Integer");
  SN_EXPECT(NUM2DBL(budget) >= 0.0001 && NUM2DBL(budget) <= 1.0, budget, "between 0.0001 and 1");
  return NUM2DBL(budget);
}

static sn_engine_options options_of(VALUE modes, VALUE rate, VALUE max_frames, VALUE memory_limit) {
  sn_engine_options options = {.columns = columns_of_modes(modes)};
  SN_EXPECT(RB_FLOAT_TYPE_P(rate) || RB_FIXNUM_P(rate), rate, "a Float or an Integer");
  options.rate = NUM2DBL(rate);
  SN_EXPECT(options.rate >= 0.1 && options.rate <= 10000.0, rate, "between 0.1 and 10000 Hz");
  SN_EXPECT_TYPE(max_frames, T_FIXNUM);
  long frames = FIX2LONG(max_frames);
  SN_EXPECT(frames >= 4 && frames <= SN_VM_MAX_FRAMES, max_frames, "between 4 and 16384");
  options.max_frames = (uint32_t)frames;
  SN_EXPECT_TYPE(memory_limit, T_FIXNUM);
  SN_EXPECT(FIX2LONG(memory_limit) >= 0, memory_limit, "0 (no limit) or a number of bytes");
  options.memory_limit = (size_t)FIX2LONG(memory_limit);
  return options;
}

/* Sonde::Native.open_window(modes, rate, max_frames, memory_limit, budget = nil) */
static VALUE open_window(int argc, VALUE *argv, VALUE native) {
  (void)native;
  VALUE modes, rate, max_frames, memory_limit, budget;
  rb_scan_args(argc, argv, "41", &modes, &rate, &max_frames, &memory_limit, &budget);
  sn_engine_options options = options_of(modes, rate, max_frames, memory_limit);
  options.budget = budget_of(budget);
  sn_window *window = calloc(1, sizeof *window);
  if (!window) rb_memerror();
  VALUE self = rb_data_typed_object_wrap(window_class, window, &window_type);
  const char *problem = sn_engine_open(window, &options);
  if (problem) rb_raise(sn_error_class, "profiling cannot start: %s", problem);
  return self;
}

/* -- taking the profile -------------------------------------------------------------------------------------------- */

static void comment(sn_window *window, const char *text) {
  /* Best effort: a profile without a remark is still a profile. */
  if (sn_profile_add_comment(window->profile, text, strlen(text)) == SN_NO_MEMORY) return;
}

static void comment_allocations(sn_window *window) {
  char text[800];
  bool heap = window->columns >> SN_HEAP_LIVE_SIZE & 1;
  if (heap) {
    sn_heap_describe(text, sizeof text);
    comment(window, text);
  }
  if (!heap && !(window->columns >> SN_ALLOC_SAMPLES & 1)) return;
  sn_alloc_describe(&window->alloc, text, sizeof text);
  comment(window, text);
  if (!sn_alloc_problem()) return;
  snprintf(text, sizeof text, "alloc: stopped; %s", sn_alloc_problem());
  comment(window, text);
}

/* Said where it is less than nine tenths of what was asked for. */
static void comment_rate(sn_window *window) {
  char text[160];
  double seconds = (double)(sn_the_engine.slot_started - window->started) / 1e9;
  double instants = (double)(atomic_load(&sn_the_engine.counters.instants) - window->instants);
  double rate = seconds > 0 ? instants / seconds : 0, wanted = 1e9 / (double)window->interval_ns;
  bool sampled = window->columns & (1u << SN_CPU_TIME | 1u << SN_WALL_TIME);
  if (!sampled || instants < 20 || rate > wanted * 0.9) return;
  snprintf(text, sizeof text, "rate: %.1f instants a second (asked for: %.1f), within a budget of %.2f %% of one CPU",
           rate, wanted, atomic_load(&sn_the_engine.budget) * 100);
  comment(window, text);
}

static void add_comments(sn_window *window) {
  char text[200];
  comment_rate(window);
  if (window->failed != SN_OK) {
    snprintf(text, sizeof text, "incomplete: samples were lost (%s)", sn_status_text(window->failed));
    comment(window, text);
  }
  sn_engine_describe_losses(text, sizeof text);
  if (text[0]) comment(window, text);
  comment_allocations(window);
}

static VALUE take_profile(sn_window *window) {
  add_comments(window);
  window->profile->duration_nanos = sn_the_engine.slot_started - window->started; /* from flip to flip */
  VALUE profile = sn_profile_object(window->profile);
  window->profile = NULL;
  return profile;
}

/* The profile so far; a new one begins. nil when the window is closed. */
static VALUE window_flush(VALUE self) {
  sn_window *window = get(self);
  if (!sn_engine_flush(window)) return Qnil;
  VALUE profile = take_profile(window);
  sn_check(sn_engine_begin_profile(window), "beginning a profile");
  return profile;
}

/* Ends the window; its profile, or nil when it was closed already. */
static VALUE window_close(VALUE self) {
  sn_window *window = get(self);
  if (!sn_engine_close(window)) return Qnil;
  return take_profile(window);
}

static VALUE window_closed_p(VALUE self) {
  return get(self)->open ? Qfalse : Qtrue;
}

static VALUE window_inspect(VALUE self) {
  const sn_window *window = get(self);
  if (!window->open) return rb_str_new_lit("#<Sonde::Native::Window closed>");
  return rb_sprintf("#<Sonde::Native::Window open for %.3f s, %u threads, slot %u active, %u samples merged>",
                    (double)(sn_clock_monotonic() - window->started) / 1e9, atomic_load(&sn_threads.count),
                    sn_recorder_active(&sn_the_engine.recorder), window->profile ? window->profile->sample_count : 0);
}

void sn_define_window(VALUE native) {
  window_class = rb_define_class_under(native, "Window", rb_cObject);
  rb_gc_register_mark_object(window_class);
  rb_undef_alloc_func(window_class);
  rb_undef_method(rb_singleton_class(window_class), "new");
  rb_define_singleton_method(native, "open_window", open_window, -1);
  rb_define_method(window_class, "flush", window_flush, 0);
  rb_define_method(window_class, "close", window_close, 0);
  rb_define_method(window_class, "closed?", window_closed_p, 0);
  rb_define_method(window_class, "inspect", window_inspect, 0);
}
