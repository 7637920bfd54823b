/* vm_newobj: see the header. Called by jobs and by whoever opens, flushes or closes a window, with the GVL; the hook
 * runs inside the VM's allocation. No lock. */
#include "vm_newobj.h"

#include <ruby/debug.h>
#include <string.h>
#include <time.h>

#include "vm_features.h"
#include "vm_layout.h"
#include "vm_layout_table.h"
#include "vm_thread.h"

extern const char ruby_version[];

static const char *refusal;
static sn_vm_newobj_callbacks callbacks;
static bool ready, on, knows_births;

/* -- where it must not be used ------------------------------------------------------------------------------------- */

static bool is_version(const char *const *versions, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (strcmp(ruby_version, versions[i]) == 0) return true;
  }
  return false;
}

static const char *refusal_of_version(void) {
  static const char *const torn[] = {"3.0.0"};
  static const char *const crash[] = {"3.2.0", "3.2.1", "3.2.2"};
  if (is_version(torn, SN_ARRAY_LENGTH(torn))) {
    return "Ruby 3.0.0 shows objects to profilers before they are made up (Bug #17599): use 3.0.1 or later";
  }
  if (is_version(crash, SN_ARRAY_LENGTH(crash))) {
    return "Ruby 3.2.0 to 3.2.2 crash when a class is made while allocations are watched (Bug #19482): use 3.2.3 or "
           "later";
  }
  return NULL;
}

#if SN_VM_NEWOBJ_FEARS_RACTORS

/* Exported by libruby: the main Ractor while no other was ever made, else NULL. */
extern void *ruby_single_main_ractor;
static const char *const because_of_ractors =
    "a Ractor was made, and Ruby up to 3.2 crashes when allocations are watched beside Ractors (Bugs #18464, #19112)";

static const char *refusal_of_ractors(void) {
  return ruby_single_main_ractor ? NULL : because_of_ractors;
}

/* In C, since a method in Ruby would be where the Ractor says it was made. */
static VALUE before_ractor(int argc, VALUE *argv, VALUE self) {
  (void)self;
  refusal = because_of_ractors;
  if (callbacks.ractor) callbacks.ractor();
  return rb_call_super_kw(argc, argv, rb_keyword_given_p());
}

static void watch_ractors(void) {
  VALUE guard = rb_module_new();
  rb_define_method(guard, "new", before_ractor, -1);
  VALUE ractor = rb_const_get(rb_cObject, rb_intern("Ractor"));
  rb_prepend_module(rb_singleton_class(ractor), guard);
}

#else

static const char *refusal_of_ractors(void) {
  return NULL;
}
static void watch_ractors(void) {}

#endif

const char *sn_vm_newobj_refusal(void) {
  if (!refusal) refusal = refusal_of_version();
  if (!refusal) refusal = refusal_of_ractors();
  return refusal;
}

/* -- the hook ------------------------------------------------------------------------------------------------------ */

/* Not a TracePoint: those are objects, which the VM frees at its end while a hook enabled by a finalizer may still
 * fire. And the VM calls this one with less ado. */
static void on_birth(VALUE data, const rb_trace_arg_t *event) {
  (void)data;
  if (SN_VM_NEWOBJ_IS_GLOBAL && !sn_vm_thread_in_main_ractor()) return;
  callbacks.born(event);
}

/* The VM's own type for both kinds of hooks. */
static rb_event_hook_func_t hook(void) {
  return (rb_event_hook_func_t)(void (*)(void))on_birth;
}

void sn_vm_newobj_on(void) {
  if (on || !ready) return; /* added twice it would fire twice */
  rb_add_event_hook2(hook(), RUBY_INTERNAL_EVENT_NEWOBJ, Qnil,
                     RUBY_EVENT_HOOK_FLAG_SAFE | RUBY_EVENT_HOOK_FLAG_RAW_ARG);
  on = true;
}

void sn_vm_newobj_off(void) {
  if (!on) return;
  on = false;
  rb_remove_event_hook(hook());
}

bool sn_vm_newobj_is_on(void) {
  return on;
}

/* The event's own words name the object, the execution context and its top frame, as do those that are known by another
 * way. */
static void check_birth(const void *birth) {
  uintptr_t event = (uintptr_t)birth;
  uint64_t ec = word_at(sn_vm_layout_thread_struct(rb_thread_current()), TH_EC);
  knows_births = word_at(event, BIRTH_EC) == ec && word_at(event, BIRTH_CFP) == word_at(ec, EC_CFP) &&
                 word_at(event, BIRTH_OBJECT) == sn_vm_newobj_object(birth);
}

static void look_at_birth(void) {
  if (SN_VM_NEWER_THAN_KNOWN || sn_vm_layout_check_thread(rb_thread_current())) return;
  callbacks.born = check_birth;
  sn_vm_newobj_on();
  rb_obj_alloc(rb_cObject);
  sn_vm_newobj_off();
}

void sn_vm_newobj_prepare(const sn_vm_newobj_callbacks *wanted) {
  if (!ready) {
    watch_ractors();
    ready = true;
    look_at_birth();
  }
  callbacks = *wanted;
}

/* The instruction of the nearest frame in Ruby: C functions have none of their own. */
static uint64_t instruction(uintptr_t event) {
  enum { MOST_C_FRAMES = 8 };
  uintptr_t ec = word_at(event, BIRTH_EC), cfp = word_at(event, BIRTH_CFP);
  uint64_t pc = word_at(cfp, CFP_PC);
  if (SN_LIKELY(pc)) return pc;
  uintptr_t end = word_at(ec, EC_VM_STACK) + word_at(ec, EC_VM_STACK_SIZE) * 8;
  for (int i = 0; !pc && i < MOST_C_FRAMES && cfp + 2 * CFP_SIZE <= end; i++) {
    cfp += CFP_SIZE;
    pc = word_at(cfp, CFP_PC);
  }
  return pc;
}

VALUE sn_vm_newobj_object(const void *birth) {
  return rb_tracearg_object((rb_trace_arg_t *)birth);
}

uint64_t sn_vm_newobj_place(const void *birth) {
  uintptr_t event = (uintptr_t)birth;
  VALUE object = knows_births ? word_at(event, BIRTH_OBJECT) : sn_vm_newobj_object(birth);
  uint64_t place = knows_births ? instruction(event) : 0;
  return place * 31 + RBASIC(object)->klass * 32 + (uint64_t)RB_BUILTIN_TYPE(object);
}

/* -- its cost ------------------------------------------------------------------------------------------------------ */

enum { ROUNDS = 31, OBJECTS = 160 };

static double time_objects(void) {
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  for (int i = 0; i < OBJECTS; i++) rb_obj_alloc(rb_cObject);
  clock_gettime(CLOCK_MONOTONIC, &after);
  return (double)(after.tv_sec - before.tv_sec) * 1e9 + (double)(after.tv_nsec - before.tv_nsec);
}

static double time_hooked_objects(void) {
  sn_vm_newobj_on();
  double ns = time_objects();
  sn_vm_newobj_off();
  return ns;
}

static double median(double *values, int count) {
  for (int i = 1; i < count; i++) {
    for (int k = i; k > 0 && values[k - 1] > values[k]; k--) {
      double swapped = values[k];
      values[k] = values[k - 1];
      values[k - 1] = swapped;
    }
  }
  return values[count / 2];
}

/* Short loops in turn, and the median of the differences: one pair is easily off by more than the cost, a collection
 * falls into some. */
double sn_vm_newobj_cost(void) {
  const double least = 2, most = 100;
  double differences[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    double with = i % 2 ? time_hooked_objects() : 0;
    double without = time_objects();
    if (i % 2 == 0) with = time_hooked_objects();
    differences[i] = (with - without) / OBJECTS;
  }
  double cost = median(differences, ROUNDS);
  return cost < least ? least : cost > most ? most : cost;
}

/* -- what else the VM says ----------------------------------------------------------------------------------------- */

uint64_t sn_vm_newobj_count(void) {
  static VALUE key;
  if (!key) key = ID2SYM(rb_intern("total_allocated_objects"));
  return rb_gc_stat(key);
}

static VALUE call(const char *module, const char *inner, const char *method) {
  ID name = rb_intern(module);
  if (!rb_const_defined(rb_cObject, name)) return Qnil;
  VALUE holder = rb_const_get(rb_cObject, name);
  if (inner) {
    name = rb_intern(inner);
    if (!rb_const_defined(holder, name)) return Qnil;
    holder = rb_const_get(holder, name);
  }
  ID id = rb_intern(method);
  return rb_respond_to(holder, id) ? rb_funcall(holder, id, 0) : Qnil;
}

bool sn_vm_newobj_other_ractors(void) {
  if (!SN_VM_HAS_RACTORS || SN_VM_NEWOBJ_FEARS_RACTORS) return false; /* the hook is off then */
  VALUE count = call("Ractor", NULL, "count");
  return RB_FIXNUM_P(count) && FIX2LONG(count) > 1;
}

bool sn_vm_newobj_compiled_code(void) {
  return SN_VM_HAS_TRIGGERED_JOBS && RTEST(call("RubyVM", "YJIT", "enabled?"));
}
