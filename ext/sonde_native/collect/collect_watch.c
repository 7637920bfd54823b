/* collect_watch: see the header. The worker makes captures and pushes them to `finished`; holders of the GVL take from
 * there, book, free and mark. A thread's own capture is guarded by the lock of its due; the worker never waits for
 * it. */
#include "collect_watch.h"

#include <stdlib.h>

#include "../vm/vm_layout.h"
#include "collect_labels.h"
#include "collect_sample.h"
#include "collect_stack.h"

enum {
  WATCH_LIMIT = SN_VM_POSITION_BATCH,
  FINISHED_LIMIT = 4096,
  COPY_LIMIT = 4 /* threads whose frames are copied through the kernel in one instant, which is slow */
};

struct sn_capture {
  struct sn_capture *next;
  sn_thread *thread;
  uint32_t number; /* the thread's, which tells whether the entry is still its own */
  sn_vm_position position;
  int64_t until;
  int64_t instants;
  int64_t weight;
  int64_t weight_count;
  uint32_t labels;
  uint32_t count;
  uint32_t omitted;
  sn_vm_copied_frame frames[];
};

static _Atomic(struct sn_capture *) finished; /* newest first */
static _Atomic uint32_t finished_count;
static _Atomic uint32_t cursor; /* where the next look begins */

/* -- worker -------------------------------------------------------------------------------------------------------- */

static struct sn_capture *capture_of(const sn_thread *t) {
  return atomic_load_explicit(&t->capture, memory_order_acquire);
}

/* CPU that the worker saw the thread burn while it stood here. Of the last instant only what was known at once
 * counts: the thread has moved since, and may have burned elsewhere. The due's lock is held: it guards the capture
 * too. */
static void take_native_weight(sn_thread *t, struct sn_capture *c) {
  sn_due *due = &t->due;
  if (!due->pending || !due->native) return;
  c->weight = due->confirmed[0] + due->confirmed[1] + due->burned_at_once * due->gap;
  c->weight_count = due->confirmed_count[0] + due->confirmed_count[1] + (due->burned_at_once > 0);
  for (int i = 0; i < 2; i++) due->confirmed[i] = due->confirmed_count[i] = 0;
  due->pending = false;
}

/* Pushed before it is taken from the thread: a marker must find it in one place at least. The lock is held. */
static void hand_over(sn_thread *t) {
  struct sn_capture *c = capture_of(t);
  if (!c) return;
  take_native_weight(t, c);
  atomic_fetch_add_explicit(&finished_count, 1, memory_order_relaxed);
  c->next = atomic_load_explicit(&finished, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&finished, &c->next, c, memory_order_release, memory_order_relaxed)) {
  }
  atomic_store_explicit(&t->capture, NULL, memory_order_release);
}

static struct sn_capture *keep(sn_thread *t, const sn_vm_copied_frame *frames, uint32_t count) {
  struct sn_capture *c = malloc(sizeof *c + count * sizeof frames[0]);
  if (!c) return NULL;
  *c = (struct sn_capture){.thread = t, .number = t->number, .instants = 1, .count = count};
  for (uint32_t i = 0; i < count; i++) c->frames[i] = frames[i];
  return c;
}

/* Checked after it was published: a collection that began since sees either the copy or the frames on the thread's
 * stack. What is of no use is handed over all the same, since a marker may be at it; without frames and owner it is
 * just freed. */
static void publish(sn_vm_access access, sn_thread *t, struct sn_capture *c) {
  atomic_store_explicit(&t->capture, c, memory_order_release);
  if (access == SN_VM_WITH_GVL) return;
  const sn_vm_position *known = &c->position;
  uintptr_t thread_struct = t->vm_address;
  bool unmoved;
  atomic_thread_fence(memory_order_seq_cst);
  sn_vm_layout_unmoved(access, &thread_struct, &known, 1, &unmoved);
  if (unmoved && sn_vm_layout_gvl_owner() != thread_struct) return;
  c->number = 0;
  hand_over(t);
}

/* Answers whether the thread can be read. known_ec: see sn_vm_layout_copy. */
static bool capture(sn_vm_access access, sn_thread *t, uint64_t known_ec, int64_t instant) {
  static sn_vm_copied_frame room_for[2][SN_VM_MAX_FRAMES]; /* the worker's, and that of who holds the GVL */
  sn_vm_copied_frame *frames = room_for[access];
  sn_vm_position position = {.ec = known_ec};
  uint32_t count, omitted, room = sn_the_engine.max_frames;
  sn_vm_copy_result result = sn_vm_layout_copy(access, t->vm_address, &position, frames, room, &count, &omitted);
  if (result != SN_VM_COPY_DONE) return result != SN_VM_COPY_UNREADABLE;
  if (atomic_load_explicit(&finished_count, memory_order_relaxed) >= FINISHED_LIMIT) {
    /* Nobody took the GVL for long. The time stays open and goes to what the thread is seen doing next. */
    sn_count(&sn_the_engine.counters.captures_lost, 1);
    return true;
  }
  struct sn_capture *c = keep(t, frames, count);
  if (!c) return true;
  c->position = position;
  c->until = instant;
  c->omitted = omitted;
  c->labels = sn_labels_note(t, access == SN_VM_WITH_GVL);
  publish(access, t, c);
  return true;
}

static bool lock(sn_thread *t) {
  if (sn_due_try_lock(&t->due, 1)) return true;
  sn_count(&sn_the_engine.counters.contended, 1);
  return false;
}

static void stays(sn_thread *t, int64_t instant) {
  if (!lock(t)) return;
  struct sn_capture *c = capture_of(t);
  if (c) {
    c->until = instant;
    c->instants++;
  }
  sn_due_unlock(&t->due);
}

static void has_moved(sn_vm_access access, sn_thread *t, int64_t instant, void (*moved)(sn_thread *t)) {
  if (!lock(t)) return;
  const struct sn_capture *old = capture_of(t);
  uint64_t known_ec = old ? old->position.ec : 0;
  hand_over(t);
  bool readable = capture(access, t, known_ec, instant);
  sn_due_unlock(&t->due);
  if (readable) moved(t);
}

/* What it did at this instant will not be known, nor what of the CPU it used belongs there. Who is put off is drawn by
 * lot (the order of the look). */
static void put_off(sn_thread *t, void (*moved)(sn_thread *t)) {
  sn_count(&sn_the_engine.counters.copies_put_off, 1);
  if (!lock(t)) return;
  hand_over(t);
  for (int i = 0; i < 2; i++) t->due.confirmed[i] = t->due.confirmed_count[i] = 0;
  if (t->due.native) t->due.pending = false;
  sn_due_unlock(&t->due);
  moved(t);
}

/* Threads whose standing is asked for together. */
typedef struct question {
  sn_thread *threads[WATCH_LIMIT];
  uintptr_t structs[WATCH_LIMIT];
  sn_vm_position known[WATCH_LIMIT];
  const sn_vm_position *positions[WATCH_LIMIT];
  bool unmoved[WATCH_LIMIT];
  uint32_t count;
} question;

/* The position is copied under the lock: whoever holds the GVL may free the capture at any other moment. */
static void ask_about(question *q, sn_thread *t) {
  uint32_t i = q->count++;
  q->threads[i] = t;
  q->structs[i] = t->vm_address;
  q->positions[i] = NULL;
  if (!capture_of(t) || !sn_due_try_lock(&t->due, 1)) return;
  struct sn_capture *c = capture_of(t);
  if (c) {
    q->known[i] = c->position;
    q->positions[i] = &q->known[i];
  }
  sn_due_unlock(&t->due);
}

void sn_watch_instant(sn_vm_access access, int64_t instant, const sn_thread *holder, void (*moved)(sn_thread *t)) {
  question q;
  q.count = 0;
  uint32_t count = atomic_load_explicit(&sn_threads.count, memory_order_acquire);
  for (uint32_t i = 0; i < count && i < WATCH_LIMIT; i++) {
    uint32_t at = atomic_fetch_add(&cursor, 1) % count;
    sn_thread *t = atomic_load_explicit(&sn_threads.entries[at], memory_order_acquire);
    if (t && t != holder && t->vm_address) ask_about(&q, t);
  }
  if (count > 0) atomic_fetch_add(&cursor, (uint32_t)(instant >> 8) % count); /* instants are random */
  sn_vm_layout_unmoved(access, q.structs, q.positions, q.count, q.unmoved);
  uint32_t copied = 0;
  for (uint32_t i = 0; i < q.count; i++) {
    if (q.unmoved[i]) {
      stays(q.threads[i], instant);
    } else if (access == SN_VM_WITH_GVL || copied++ < COPY_LIMIT) {
      has_moved(access, q.threads[i], instant, moved);
    } else {
      put_off(q.threads[i], moved);
    }
  }
}

void sn_watch_stand(sn_thread *const *threads, uint32_t count, bool *stands) {
  question q;
  q.count = 0;
  for (uint32_t i = 0; i < count; i++) ask_about(&q, threads[i]);
  sn_vm_layout_unmoved(SN_VM_THROUGH_KERNEL, q.structs, q.positions, count, stands);
}

void sn_watch_running(sn_thread *t) {
  if (!capture_of(t) || !lock(t)) return;
  hand_over(t);
  sn_due_unlock(&t->due);
}

/* -- holders of the GVL -------------------------------------------------------------------------------------------- */

static void book(struct sn_capture *c) {
  sn_thread *t = c->thread;
  if (t->number != c->number || t->epoch != sn_threads.epoch) return;
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  sn_vm_layout_resolve(c->frames, c->count, c->omitted, SN_FRAME_OMITTED, sn_the_engine.stack);
  sn_labels_pin(c->labels);
  sn_sample_book_capture(store, t, c->until, c->instants, c->weight, c->weight_count);
  sn_labels_pin(SN_LABELS_READ);
  sn_recorder_leave(&sn_the_engine.recorder, store);
  sn_count(&sn_the_engine.counters.samples, 1);
}

static struct sn_capture *oldest_first(struct sn_capture *list) {
  struct sn_capture *reversed = NULL;
  while (list) {
    struct sn_capture *next = list->next;
    list->next = reversed;
    reversed = list;
    list = next;
  }
  return reversed;
}

/* Nothing between taking the list and booking can run the collector, so what was taken needs no mark. */
static void drain(bool keep) {
  struct sn_capture *c = oldest_first(atomic_exchange_explicit(&finished, NULL, memory_order_acq_rel));
  while (c) {
    struct sn_capture *next = c->next;
    if (keep) book(c);
    free(c);
    atomic_fetch_sub_explicit(&finished_count, 1, memory_order_relaxed);
    c = next;
  }
}

void sn_watch_drain(void) {
  drain(true);
}

void sn_watch_take(sn_thread *t) {
  enum { ATTEMPTS = 200 };
  if (!capture_of(t) || !sn_due_try_lock(&t->due, ATTEMPTS)) return;
  struct sn_capture *c = capture_of(t);
  if (c) take_native_weight(t, c);
  atomic_store_explicit(&t->capture, NULL, memory_order_release);
  sn_due_unlock(&t->due);
  if (c) book(c);
  free(c);
}

static void mark_capture(const struct sn_capture *c) {
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->frames[i].iseq) rb_gc_mark_maybe((VALUE)c->frames[i].iseq);
    if (c->frames[i].entry) rb_gc_mark_maybe((VALUE)c->frames[i].entry);
  }
}

/* The worker may push meanwhile, in front of the list; only holders of the GVL free what was pushed. What a thread
 * still has may be handed over, but not freed, while we look. */
void sn_watch_mark(void) {
  uint32_t count = atomic_load(&sn_threads.count);
  for (uint32_t i = 0; i < count; i++) {
    const struct sn_capture *c = capture_of(atomic_load(&sn_threads.entries[i]));
    if (c) mark_capture(c);
  }
  for (const struct sn_capture *c = atomic_load_explicit(&finished, memory_order_acquire); c; c = c->next)
    mark_capture(c);
}

void sn_watch_clear(void) {
  uint32_t count = atomic_load(&sn_threads.count);
  for (uint32_t i = 0; i < count; i++) {
    sn_thread *t = atomic_load(&sn_threads.entries[i]);
    free(capture_of(t));
    atomic_store(&t->capture, NULL);
  }
  drain(false);
}

void sn_watch_forget(void) {
  uint32_t count = atomic_load(&sn_threads.count);
  for (uint32_t i = 0; i < count; i++) atomic_store(&atomic_load(&sn_threads.entries[i])->capture, NULL);
  atomic_store(&finished, NULL);
  atomic_store(&finished_count, 0);
}
