/* collect_heap: see the header. Called with the GVL by jobs and by the flushing thread. No lock, but `busy`: a look at
 * all objects calls methods of Ruby's, so jobs may run in the middle of it; they leave the list alone then. */
#include "collect_heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_object.h"
#include "../vm/vm_weak.h"
#include "collect_stack.h"

enum {
  STORE_BYTES = 16 << 20, /* for stacks of followed objects; past it they are (overflow) */
  REBUILD_BYTES = 4 << 20 /* more than this is searched for stacks that nobody needs any more */
};

typedef struct entry {
  uint32_t number;                /* of the weak reference */
  uint32_t stack, thread, detail; /* ids of our own store */
  double weight;
  uint64_t born_gc, window;
  int64_t born_at;
  uint64_t size; /* at the last look; 0: it is dead or too young */
  uint32_t age;  /* collections it had seen when it was last known to live */
  uint32_t look_at_age;
  bool fresh; /* not scaled yet */
} entry;

static struct {
  bool on, busy;
  sn_vm_weak weak;
  entry *entries;
  uint32_t count;
  uint32_t last_number;
  double taken;
  uint64_t random;
  uint64_t looked_gc, windows;
  sn_memory memory;
  sn_raw_store store; /* stacks and details of the entries */
  bool has_store;
  size_t rebuilt_at;
  uint64_t died;
  double died_weight, ages[SN_HEAP_AGES], spans[SN_HEAP_SPANS];
  uint32_t pictured;           /* followed at the last look that was booked, */
  sn_alloc_sum objects, bytes; /* and what those that live stand for, by windows */
  uint32_t limit;
} heap = {.limit = SN_HEAP_LIMIT};

const char *const sn_heap_age_names[SN_HEAP_AGES] = {"0",      "1",       "2",        "3",
                                                     "4 to 7", "8 to 15", "16 to 31", "32 and more"};
const char *const sn_heap_span_names[SN_HEAP_SPANS] = {"below 0.01", "0.01 to 0.1", "0.1 to 1",    "1 to 10",
                                                       "10 to 60",   "60 to 600",   "600 and more"};

/* -- our own store of stacks --------------------------------------------------------------------------------------- */

/* Copies a stack and a detail between stores. */
static uint32_t copy_stack(const sn_raw_store *from, uint32_t stack, sn_raw_store *to) {
  static uint64_t frames[SN_VM_MAX_FRAMES], aux[SN_VM_MAX_FRAMES];
  static int32_t lines[SN_VM_MAX_FRAMES];
  uint32_t n;
  const uint32_t *ids = sn_stack_table_get(&from->stacks, stack, &n);
  if (n > SN_VM_MAX_FRAMES) n = SN_VM_MAX_FRAMES;
  for (uint32_t i = 0; i < n; i++) {
    const sn_raw_location *location = &from->locations[ids[i]];
    frames[i] = location->frame;
    aux[i] = location->aux;
    lines[i] = location->line;
  }
  return sn_raw_store_stack(to, frames, aux, lines, n);
}

static uint32_t copy_detail(const sn_raw_store *from, uint32_t detail, sn_raw_store *to, sn_detail_kind kind,
                            uint32_t number) {
  sn_raw_detail copy = from->details.details[detail];
  if (copy.kind == SN_DETAIL_NONE) return 0;
  copy.kind = kind;
  copy.number = number;
  return sn_detail_table_intern(&to->details, copy);
}

/* Stacks of objects that died go when most of the store may be such: living ones move to a fresh one. Both are marked
 * meanwhile, as nothing is collected in between: this makes no object. */
static void rebuild_store(void) {
  sn_raw_store fresh;
  if (sn_raw_store_init(&fresh, &heap.memory) != SN_OK) return;
  for (uint32_t i = 0; i < heap.count; i++) {
    entry *e = &heap.entries[i];
    e->stack = copy_stack(&heap.store, e->stack, &fresh);
    e->detail = copy_detail(&heap.store, e->detail, &fresh, SN_DETAIL_CLASS, 0);
  }
  sn_raw_store_destroy(&heap.store);
  heap.store = fresh;
  heap.rebuilt_at = atomic_load(&heap.memory.used);
}

/* -- the list ------------------------------------------------------------------------------------------------------ */

static void remove_entry(uint32_t i) {
  heap.entries[i] = heap.entries[--heap.count];
}

static uint32_t age_bucket(uint64_t age) {
  if (age < 4) return (uint32_t)age;
  return age < 8 ? 4 : age < 16 ? 5 : age < 32 ? 6 : 7;
}

static uint32_t span_bucket(double seconds) {
  static const double ends[] = {0.01, 0.1, 1, 10, 60, 600};
  uint32_t i = 0;
  while (i < SN_ARRAY_LENGTH(ends) && seconds >= ends[i]) i++;
  return i;
}

static void count_death(const entry *e) {
  heap.died++;
  heap.died_weight += e->weight;
  heap.ages[age_bucket(e->age)] += e->weight;
  heap.spans[span_bucket((double)(sn_clock_monotonic() - e->born_at) / 1e9)] += e->weight;
}

static VALUE forget_reference(VALUE number) {
  sn_vm_weak_forget(&heap.weak, (uint32_t)number);
  return Qnil;
}

/* Lets a random half go. Unbiased: the others stand for them. */
static void thin(void) {
  heap.taken /= 2;
  for (uint32_t i = heap.count; i-- > 0;) {
    if (sn_alloc_random(&heap.random) >> 63) {
      heap.entries[i].weight *= 2;
      continue;
    }
    int raised = 0;
    rb_protect(forget_reference, (VALUE)heap.entries[i].number, &raised);
    if (raised) rb_set_errinfo(Qnil);
    remove_entry(i);
  }
}

typedef struct newcomer {
  VALUE object;
  entry entry;
} newcomer;

static VALUE add_reference(VALUE data) {
  newcomer *n = (newcomer *)data;
  if (heap.count >= heap.limit) thin();
  sn_vm_weak_set(&heap.weak, n->entry.number, n->object);
  if (heap.count < heap.limit) heap.entries[heap.count++] = n->entry;
  return Qnil;
}

static newcomer meet(const sn_heap_candidate *candidate) {
  entry e = {.number = ++heap.last_number,
             .stack = copy_stack(candidate->store, candidate->stack, &heap.store),
             .detail = copy_detail(candidate->store, candidate->detail, &heap.store, SN_DETAIL_CLASS, 0),
             .thread = candidate->thread,
             .weight = candidate->weight / heap.taken,
             .born_gc = sn_vm_events_gc_count(),
             .born_at = sn_clock_monotonic(),
             .window = heap.windows,
             .look_at_age = 1,
             .fresh = true};
  return (newcomer){.object = candidate->object, .entry = e};
}

/* First everything that reads the slot's store, which may be another one as soon as Ruby is called. */
void sn_heap_follow(const sn_heap_candidate *candidates, uint32_t count) {
  newcomer met[SN_HEAP_BATCH];
  uint32_t n = 0;
  if (!heap.on || heap.busy) return;
  heap.windows++;
  for (uint32_t i = 0; i < count && n < SN_HEAP_BATCH; i++) {
    if (!candidates[i].object || !sn_vm_object_is_visible(candidates[i].object)) continue;
    if (sn_alloc_uniform(&heap.random) <= heap.taken) met[n++] = meet(&candidates[i]);
  }
  heap.busy = true;
  for (uint32_t i = 0; i < n; i++) {
    int raised = 0;
    rb_protect(add_reference, (VALUE)&met[i], &raised);
    if (raised) rb_set_errinfo(Qnil);
  }
  heap.busy = false;
}

/* -- who died ------------------------------------------------------------------------------------------------------ */

/* An object is looked at when it is 1, 2, 3, 4, 6, 9, 13... collections old: its age at death is known well enough. */
static uint32_t next_look(uint32_t age) {
  return age < 4 ? age + 1 : age + age / 2;
}

static VALUE look_at_due(VALUE unused) {
  (void)unused;
  for (uint32_t i = 0; i < heap.count;) {
    entry *e = &heap.entries[i];
    uint32_t age = (uint32_t)(heap.looked_gc - e->born_gc);
    if (age < e->look_at_age) {
      i++;
    } else if (NIL_P(sn_vm_weak_get(&heap.weak, e->number))) {
      count_death(e);
      remove_entry(i);
    } else {
      e->age = age;
      e->look_at_age = next_look(age);
      i++;
    }
  }
  return Qnil;
}

void sn_heap_job(void) {
  uint64_t gc = sn_vm_events_gc_count();
  if (!heap.on || heap.busy || gc == heap.looked_gc) return;
  heap.busy = true;
  heap.looked_gc = gc;
  int raised = 0;
  rb_protect(look_at_due, Qnil, &raised);
  if (raised) rb_set_errinfo(Qnil);
  if (atomic_load(&heap.memory.used) > heap.rebuilt_at * 2 + REBUILD_BYTES) rebuild_store();
  heap.busy = false;
}

static VALUE look_at_all(VALUE unused) {
  (void)unused;
  uint64_t gc = sn_vm_events_gc_count();
  for (uint32_t i = 0; i < heap.count;) {
    entry *e = &heap.entries[i];
    VALUE object = sn_vm_weak_get(&heap.weak, e->number);
    uint64_t age = gc - e->born_gc;
    e->size = 0;
    if (NIL_P(object)) {
      count_death(e);
      remove_entry(i);
      continue;
    }
    e->age = (uint32_t)age;
    if (age > 0) e->size = sn_vm_object_is_measurable(object) ? sn_vm_object_size(object) : sn_vm_object_slot_size();
    RB_GC_GUARD(object);
    i++;
  }
  return Qnil;
}

static VALUE not_busy(VALUE unused) {
  (void)unused;
  heap.busy = false;
  return Qnil;
}

void sn_heap_look(void) {
  if (!heap.on || heap.busy) return;
  heap.busy = true;
  rb_ensure(look_at_all, Qnil, not_busy, Qnil);
  if (heap.taken < 1 && heap.count < heap.limit / 4) heap.taken *= 2;
}

/* -- booking ------------------------------------------------------------------------------------------------------- */

void sn_heap_scale(double factor) {
  for (uint32_t i = 0; i < heap.count; i++) {
    if (!heap.entries[i].fresh) continue;
    heap.entries[i].weight *= factor;
    heap.entries[i].fresh = false;
  }
}

static void book(sn_raw_store *store, const entry *e) {
  sn_row_key key = {.stack = copy_stack(&heap.store, e->stack, store),
                    .thread = e->thread,
                    .detail = copy_detail(&heap.store, e->detail, store, SN_DETAIL_LIVE, e->age)};
  sn_row *row = sn_raw_store_row(store, key);
  row->values[SN_HEAP_LIVE_SAMPLES] += (int64_t)(e->weight + 0.5);
  row->values[SN_HEAP_LIVE_SIZE] += (int64_t)(e->weight * (double)e->size + 0.5);
}

static int by_window(const void *a, const void *b) {
  const entry *x = a, *y = b;
  return (x->window > y->window) - (x->window < y->window);
}

/* Objects of one window may be of one site: a window counts once. */
static void sum_up(void) {
  double objects = 0, bytes = 0;
  heap.objects = heap.bytes = (sn_alloc_sum){.sum = 0};
  for (uint32_t i = 0; i < heap.count; i++) {
    const entry *e = &heap.entries[i];
    objects += e->size > 0 ? e->weight : 0;
    bytes += e->weight * (double)e->size;
    if (i + 1 < heap.count && heap.entries[i + 1].window == e->window) continue;
    sn_alloc_sum_add(&heap.objects, objects);
    sn_alloc_sum_add(&heap.bytes, bytes);
    objects = bytes = 0;
  }
}

void sn_heap_settle(void) {
  if (!heap.on) return;
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  for (uint32_t i = 0; i < heap.count; i++) {
    if (heap.entries[i].size > 0) book(store, &heap.entries[i]);
  }
  sn_recorder_leave(&sn_the_engine.recorder, store);
  qsort(heap.entries, heap.count, sizeof *heap.entries, by_window);
  heap.pictured = heap.count;
  sum_up();
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

void sn_heap_mark(void) {
  if (!heap.on) return;
  sn_vm_weak_mark(&heap.weak);
  uint32_t count = atomic_load_explicit(&heap.store.location_count, memory_order_acquire);
  for (uint32_t i = 0; i < count; i++) {
    const sn_raw_location *location = &heap.store.locations[i];
    if (location->frame < SN_FRAME_FIRST_REAL) continue;
    rb_gc_mark((VALUE)location->frame);
    if (location->aux) rb_gc_mark((VALUE)location->aux);
  }
  count = atomic_load_explicit(&heap.store.details.count, memory_order_acquire);
  for (uint32_t i = 1; i < count; i++) {
    uint64_t class = heap.store.details.details[i].word;
    if (class >= SN_VM_FIRST_CLASS) rb_gc_mark((VALUE) class);
  }
}

const char *sn_heap_refusal(void) {
  return sn_vm_weak_refusal();
}

const char *sn_heap_begin(void) {
  if (heap.on) return NULL;
  const char *problem = sn_heap_refusal();
  if (problem) return problem;
  if (!heap.entries) heap.entries = malloc(SN_HEAP_LIMIT * sizeof *heap.entries);
  if (!heap.has_store) {
    sn_memory_init(&heap.memory, STORE_BYTES);
    heap.has_store = sn_raw_store_init(&heap.store, &heap.memory) == SN_OK;
  }
  if (!heap.entries || !heap.has_store) return "no memory for the heap profile";
  sn_raw_store_reset(&heap.store);
  heap.count = heap.last_number = 0;
  heap.taken = 1;
  heap.random = (uint64_t)sn_clock_monotonic() * 0x9E3779B97F4A7C15u | 1;
  heap.looked_gc = sn_vm_events_gc_count();
  heap.rebuilt_at = atomic_load(&heap.memory.used);
  heap.died = 0;
  heap.died_weight = 0;
  heap.objects = heap.bytes = (sn_alloc_sum){.sum = 0};
  memset(heap.ages, 0, sizeof heap.ages);
  memset(heap.spans, 0, sizeof heap.spans);
  heap.busy = false;
  sn_vm_weak_make(&heap.weak);
  heap.on = true;
  return NULL;
}

void sn_heap_end(void) {
  heap.on = false;
  heap.count = 0;
  memset(&heap.weak, 0, sizeof heap.weak);
}

#ifdef SONDE_TESTING
void sn_heap_testing_limit(uint32_t limit) {
  heap.limit = limit < SN_HEAP_LIMIT ? limit : SN_HEAP_LIMIT;
}
#endif

bool sn_heap_is_on(void) {
  return heap.on;
}

void sn_heap_forget(void) {
  heap.on = heap.busy = false;
  heap.count = 0;
}

size_t sn_heap_memory(void) {
  if (!heap.on) return 0;
  return SN_HEAP_LIMIT * sizeof *heap.entries + atomic_load(&heap.memory.used);
}

sn_heap_counts sn_heap_counted(void) {
  sn_heap_counts counts = {.followed = heap.count, .taken = heap.taken, .died = heap.died};
  counts.objects = heap.objects;
  counts.bytes = heap.bytes;
  double all = heap.died_weight > 0 ? heap.died_weight : 1;
  for (int i = 0; i < SN_HEAP_AGES; i++) counts.ages[i] = heap.ages[i] / all;
  for (int i = 0; i < SN_HEAP_SPANS; i++) counts.spans[i] = heap.spans[i] / all;
  return counts;
}

void sn_heap_describe(char *text, size_t size) {
  sn_heap_counts c = sn_heap_counted();
  int used =
      snprintf(text, size,
               "heap: objects that have seen a collection and live, as far as they are followed (%u, 1 in %.0f "
               "of the picked ones); worth %.1f equal ones for heap-live-samples, %.1f for heap-live-size, which "
               "are %.0f and %.0f; a share p has a standard error of sqrt(p / worth) of that at most; of %llu "
               "that died, in collections seen:",
               heap.pictured, 1 / c.taken, sn_alloc_sum_worth(&c.objects), sn_alloc_sum_worth(&c.bytes), c.objects.sum,
               c.bytes.sum, (unsigned long long)c.died);
  for (int i = 0; i < SN_HEAP_AGES && used > 0 && (size_t)used < size; i++) {
    used += snprintf(text + used, size - (size_t)used, "%s %s: %.1f %%", i ? "," : "", sn_heap_age_names[i],
                     c.ages[i] * 100);
  }
}
