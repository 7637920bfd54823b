/* collect_alloc_window: one window, from being asked for to being booked. sn_alloc_born runs inside the VM's
 * allocation, the rest at safepoints, all with the GVL; only sn_alloc_end_now and sn_alloc_length are called by the
 * worker too, without it. No lock. */
#include <string.h>

#include "../core/wide_math.h"
#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_layout.h"
#include "../vm/vm_newobj.h"
#include "../vm/vm_object.h"
#include "../vm/vm_thread.h"
#include "collect_alloc_state.h"
#include "collect_debt.h"
#include "collect_heap.h"
#include "collect_labels.h"
#include "collect_stack.h"

static const double MOST_GAP_NS = 80e6;
static const double BUDGET = 0.007; /* of the time that may be spent on looking */

enum {
  MOST_STACK_NS = 20000,
  FIXED_NS = 25000, /* of the program's time that opening and closing costs, beside objects and stacks */
  LOOK_EVERY = 32   /* windows between two looks at the cost */
};

/* -- inside the VM's allocation ------------------------------------------------------------------------------------ */

/* by_size: the chance with which it is picked for its size. */
static void take_pick(const void *birth, uint64_t number, double by_size) {
  VALUE object = sn_vm_newobj_object(birth);
  int64_t began = sn_clock_monotonic();
  sn_raw_store *store = sn_alloc.pick_count < SN_ALLOC_PICKS ? sn_recorder_enter(&sn_the_engine.recorder) : NULL;
  if (store) {
    sn_thread *t = sn_thread_of(rb_thread_current());
    sn_raw_detail detail = {.word = sn_vm_object_class(object), .kind = SN_DETAIL_CLASS};
    sn_stack_walk_current();
    sn_alloc.picks[sn_alloc.pick_count++] =
        (sn_alloc_pick){.object = sn_vm_object_is_measurable(object) ? object : Qfalse,
                        .stack = sn_stack_intern(store, false),
                        .thread = t ? t->number : 0,
                        .labels = t ? sn_labels_of(t) : 0,
                        .detail = sn_detail_table_intern(&store->details, detail),
                        .weight = sn_alloc_sizes_weight(sn_alloc_chance(number, sn_alloc.picks_wanted), by_size),
                        .place = sn_vm_newobj_place(birth)};
    sn_recorder_leave(&sn_the_engine.recorder, store);
  }
  int64_t took = sn_clock_monotonic() - began;
  if (took > MOST_STACK_NS) took = MOST_STACK_NS; /* preempted: that is no cost of ours */
  int64_t before = atomic_load_explicit(&sn_alloc.stacks_ns, memory_order_relaxed);
  atomic_store_explicit(&sn_alloc.stacks_ns, before + took, memory_order_relaxed);
}

static void ask_from_here(void) {
  if (!sn_vm_events_needs_signal()) {
    sn_vm_events_trigger_job();
  } else {
    sn_vm_events_job_from_handler(sn_vm_layout_thread_struct(rb_thread_current()));
  }
}

static void not_counted(uint32_t now) {
  if (sn_alloc.stray || (now == SN_WINDOW_CLOSING && sn_alloc.on)) ask_from_here();
}

static void send_scout(const void *birth, uint64_t number) {
  VALUE object = sn_vm_newobj_object(birth);
  sn_alloc.next_scout = sn_alloc_sizes_next_scout(&sn_alloc.sizes, number, &sn_alloc.random);
  sn_alloc.scouted++;
  if (!sn_vm_object_has_buffer(object) || sn_alloc.scout_count == SN_SIZES_SCOUTS) return;
  sn_alloc.scouts[sn_alloc.scout_count++] = (sn_alloc_scout){.object = object, .place = sn_vm_newobj_place(birth)};
}

static void look_at(const void *birth, uint64_t number, double by_size) {
  if (number >= sn_alloc.next_scout) send_scout(birth, number);
  if (number >= sn_alloc.next_pick) {
    sn_alloc.next_pick = sn_alloc_next_pick(number, sn_alloc.picks_wanted, &sn_alloc.random);
  } else if (by_size > 0 && sn_alloc_uniform(&sn_alloc.random) <= by_size) {
    sn_alloc_sizes_picked(&sn_alloc.sizes);
  } else {
    return;
  }
  take_pick(birth, number, by_size);
}

void sn_alloc_born(const void *birth) {
  uint32_t now = atomic_load_explicit(&sn_alloc.state, memory_order_relaxed);
  bool counts =
      now == SN_WINDOW_OPEN ||
      (now == SN_WINDOW_CLOSING && atomic_load_explicit(&sn_alloc.inside, memory_order_relaxed) == rb_thread_current());
  if (SN_UNLIKELY(!counts)) {
    not_counted(now);
    return;
  }
  uint64_t number = sn_alloc_objects() + 1;
  atomic_store_explicit(&sn_alloc.objects, number, memory_order_relaxed);
  double by_size = 0;
  if (sn_alloc.sizes.any) by_size = sn_alloc_sizes_chance(&sn_alloc.sizes, sn_vm_newobj_place(birth));
  if (SN_UNLIKELY(by_size > 0 || number >= sn_alloc.next_pick || number >= sn_alloc.next_scout)) {
    look_at(birth, number, by_size);
  }
}

/* -- picks --------------------------------------------------------------------------------------------------------- */

static size_t size_of(const sn_alloc_pick *p) {
  if (p->object && sn_vm_object_is_measurable(p->object)) return sn_vm_object_size(p->object);
  sn_alloc.counts.unmeasured++;
  return sn_vm_object_slot_size();
}

static void book(sn_raw_store *store, const sn_alloc_pick *p, size_t size) {
  sn_row_key key = {.stack = p->stack, .thread = p->thread, .labels = p->labels, .detail = p->detail};
  sn_row *row = sn_raw_store_row(store, key);
  row->values[SN_ALLOC_SAMPLES] = sn_add_saturating(row->values[SN_ALLOC_SAMPLES], sn_alloc_units(p->weight));
  row->values[SN_ALLOC_SAMPLES_UNSCALED]++;
  row->values[SN_ALLOC_SIZE] = sn_add_saturating(row->values[SN_ALLOC_SIZE], sn_alloc_units(p->weight * (double)size));
  sn_debt_add(store, (uint32_t)(row - store->rows), p->weight * (double)size, sn_alloc.collections);
}

/* Books what the last window picked. Its stacks are of the active slot: a flush comes here before it flips. */
void sn_alloc_book(void) {
  if (sn_alloc.pick_count == 0) return;
  /* Copies, held by the machine stack: following them may run other threads, which may pick again. */
  sn_alloc_pick picks[SN_ALLOC_PICKS];
  sn_heap_candidate candidates[SN_ALLOC_PICKS];
  size_t sizes[SN_ALLOC_PICKS];
  uint32_t count = sn_alloc.pick_count;
  double all = 0, bytes = 0;
  uint64_t objects = sn_alloc_objects();
  memcpy(picks, sn_alloc.picks, count * sizeof *picks);
  sn_alloc.pick_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    picks[i].weight *= sn_alloc.factor;
    sizes[i] = size_of(&picks[i]);
    all += picks[i].weight;
    bytes += picks[i].weight * (double)sizes[i];
    sn_alloc_sizes_learn(&sn_alloc.sizes, picks[i].place, sizes[i]);
  }
  sn_alloc_sizes_window(&sn_alloc.sizes, (double)objects, bytes / sn_alloc.factor);
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  for (uint32_t i = 0; i < count; i++) {
    book(store, &picks[i], sizes[i]);
    candidates[i] = (sn_heap_candidate){.object = picks[i].object,
                                        .store = store,
                                        .stack = picks[i].stack,
                                        .thread = picks[i].thread,
                                        .detail = picks[i].detail,
                                        .weight = picks[i].weight};
  }
  sn_recorder_leave(&sn_the_engine.recorder, store);
  sn_alloc_error_window(&sn_alloc.error, all, bytes, count);
  sn_alloc.counts.picks += count;
  sn_heap_follow(candidates, count);
}

static void mark(VALUE *object) {
  if (!*object) return;
  /* Up to 3.0 the VM gives some slots back by hand. This one may then be unmapped after this collection. */
  if (RB_BUILTIN_TYPE(*object) == T_NONE) {
    *object = Qfalse;
  } else {
    rb_gc_mark_maybe(*object);
  }
}

void sn_alloc_mark(void) {
  for (uint32_t i = 0; i < sn_alloc.pick_count; i++) mark(&sn_alloc.picks[i].object);
  for (uint32_t i = 0; i < sn_alloc.scout_count; i++) mark(&sn_alloc.scouts[i].object);
}

/* -- opening and closing ------------------------------------------------------------------------------------------- */

void sn_alloc_reset(void) {
  atomic_store_explicit(&sn_alloc.objects, 0, memory_order_relaxed);
  atomic_store_explicit(&sn_alloc.stacks_ns, 0, memory_order_relaxed);
  sn_alloc.next_pick = 1;
  sn_alloc_sizes_open(&sn_alloc.sizes);
  sn_alloc.next_scout = sn_alloc_sizes_next_scout(&sn_alloc.sizes, 0, &sn_alloc.random);
  sn_alloc.scout_count = sn_alloc.scouted = 0;
  sn_alloc.picks_wanted = sn_alloc.by_count ? SN_PICKS_BY_COUNT : SN_PICKS_BY_TIME;
  if (sn_heap_is_on()) sn_alloc.picks_wanted = SN_PICKS_FOR_HEAP;
}

void sn_alloc_open(void) {
  if (sn_alloc.stopped) {
    sn_alloc_move(SN_WINDOW_ASKED, SN_WINDOW_IDLE);
    return;
  }
  sn_alloc_book();
  sn_alloc_reset();
  if (sn_alloc_move(SN_WINDOW_ASKED, SN_WINDOW_OPEN)) sn_vm_newobj_on();
}

static void learn_from_scouts(void) {
  for (uint32_t i = 0; i < sn_alloc.scout_count; i++) {
    const sn_alloc_scout *scout = &sn_alloc.scouts[i];
    if (!scout->object || !sn_vm_object_has_buffer(scout->object)) continue;
    sn_alloc_sizes_learn(&sn_alloc.sizes, scout->place, sn_vm_object_size(scout->object));
  }
  sn_alloc.error.scouts += sn_alloc.scouted;
  sn_alloc.scout_count = sn_alloc.scouted = 0;
}

static double hook_ns(void) {
  return sn_alloc.sizes.any ? sn_alloc.hook_size_ns : sn_alloc.hook_ns;
}

/* Looking may cost so much of the time; if it costs more, windows become rarer. */
static void watch_cost(void) {
  sn_alloc.cost_ns += hook_ns() * (double)sn_alloc_objects() + FIXED_NS +
                      (double)atomic_load_explicit(&sn_alloc.stacks_ns, memory_order_relaxed);
  if (++sn_alloc.since_look < LOOK_EVERY) return;
  int64_t now = sn_clock_monotonic();
  double share = sn_alloc.cost_ns / (double)(now - sn_alloc.looked_at + 1);
  double gap = atomic_load(&sn_alloc.gap_ns);
  if (share > BUDGET) gap = gap * 1.5 < MOST_GAP_NS ? gap * 1.5 : MOST_GAP_NS;
  if (share < BUDGET / 2) gap = gap / 1.5 > SN_ALLOC_GAP_NS ? gap / 1.5 : SN_ALLOC_GAP_NS;
  atomic_store(&sn_alloc.gap_ns, gap);
  sn_alloc.looked_at = now;
  sn_alloc.cost_ns = 0;
  sn_alloc.since_look = 0;
}

/* The window is over, and no worker has anything to do with it any more. */
void sn_alloc_close(const sn_window_end *end) {
  sn_vm_newobj_off();
  learn_from_scouts();
  if (sn_alloc.by_count) {
    sn_alloc.factor = 1 / sn_alloc.coin;
  } else {
    double gaps = sn_alloc.asked_gap_ns / SN_ALLOC_GAP_NS;
    sn_alloc.factor = gaps;
    sn_alloc.open_sum += gaps * sn_alloc_length(end);
    watch_cost();
  }
  sn_alloc.seen += sn_alloc.factor * (double)sn_alloc_objects();
  sn_alloc.collections = sn_vm_events_gc_count();
  sn_alloc.counts.windows++;
  sn_alloc.counts.objects += sn_alloc_objects();
  if (sn_alloc.pick_count == 0) {
    sn_alloc_error_window(&sn_alloc.error, 0, 0, 0);
    sn_alloc.counts.empty++;
  }
  atomic_store_explicit(&sn_alloc.state, SN_WINDOW_IDLE, memory_order_release);
}

sn_window_end sn_alloc_end_now(void) {
  int64_t open = sn_clock_monotonic() - atomic_load_explicit(&sn_alloc.asked_at, memory_order_relaxed);
  return (sn_window_end){
      .ran_ns = open,
      .stacks_ns = atomic_load_explicit(&sn_alloc.stacks_ns, memory_order_relaxed),
      .objects = sn_alloc_objects(),
  };
}

double sn_alloc_length(const sn_window_end *end) {
  return sn_alloc_program_time(end->ran_ns, end->objects, hook_ns(), end->stacks_ns);
}

/* A flush, or the end of watching, cuts the window off. */
void sn_alloc_cut(void) {
  sn_window_end now = sn_alloc_end_now();
  if (sn_alloc_move(SN_WINDOW_OPEN, SN_WINDOW_CLOSING)) {
    sn_alloc_close(&now);
  } else if (sn_alloc_window() == SN_WINDOW_CLOSING) {
    sn_alloc_close(&sn_alloc.end);
  }
  sn_alloc_book();
}
