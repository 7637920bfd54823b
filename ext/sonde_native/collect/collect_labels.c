/* collect_labels: see the header. Entries are made and ended by the program's threads (binding/module_labels.c), read
 * by the sampler on the same threads, and let go at the end of a flush: all with the GVL, which is the only lock. The
 * one reader without it is sn_labels_convert, whose entries nobody changes or frees before the flush has ended. */
#include "collect_labels.h"

#include <stdlib.h>
#include <string.h>

#include "../vm/vm_events.h"
#include "../vm/vm_thread.h"
#include "collect_state.h"

enum {
  INDEX_BITS = 14,
  LIMIT = 1 << INDEX_BITS,
  BYTES_LIMIT = 4 << 20,
  OVERFLOW_INDEX = 1, /* 0 is none */
  FIRST_INDEX = 2,
  DEEPEST = 64 /* blocks inside blocks; of deeper ones the outermost do not count */
};

/* Texts stand behind the pairs. Never changed: what is amended gets another block. */
typedef struct block {
  struct block *next; /* in the list of those that were replaced */
  size_t bytes;
  uint32_t count;
  sn_label_pair pairs[];
} block;

typedef struct entry {
  _Atomic(block *) own;     /* its own pairs; those around it are the parent's */
  uint32_t id;              /* 0: free */
  uint32_t parent;          /* id of what held before; stays as long as this one does */
  uint32_t children;        /* entries that have this one as their parent */
  uint32_t next;            /* in the list of free ones, or of those that have ended */
  _Atomic uint64_t sampled; /* generation of the last row, or copy of a stack, with its index; 0: there was none */
  bool ended;
} entry;

static entry *_Atomic entries; /* LIMIT of them, made when first needed; pages that are not used cost nothing */
static uint32_t used = FIRST_INDEX, free_list, ended_list;
static block *replaced_list;
static size_t bytes_used;
static uint64_t oldest = 1; /* generation whose rows are not gone yet */
static uint32_t pinned = SN_LABELS_READ;
static uint32_t serial;
static ID holder;

static uint32_t index_of(uint32_t id) {
  return id & (LIMIT - 1);
}

static entry *entry_of(uint32_t id) {
  if (!entries || id == 0) return NULL;
  entry *e = &entries[index_of(id)];
  return e->id == id ? e : NULL;
}

/* -- making and freeing -------------------------------------------------------------------------------------------- */

static uint32_t read_holder(VALUE thread) {
  VALUE id = rb_thread_local_aref(thread, holder);
  return RB_FIXNUM_P(id) ? (uint32_t)FIX2ULONG(id) : 0;
}

/* Only where the worker copies stacks without the GVL, and needs to know without asking. */
static void fiber_switched(void) {
  if (!atomic_load_explicit(&sn_the_engine.enabled, memory_order_relaxed) || !sn_vm_thread_in_main_ractor()) return;
  VALUE thread = rb_thread_current();
  sn_thread *t = sn_thread_of(thread);
  if (t) atomic_store_explicit(&t->labels, read_holder(thread), memory_order_relaxed);
}

static bool prepare(void) {
  if (entries) return true;
  holder = rb_intern("__sonde_labels");
  entry *made = calloc(LIMIT, sizeof *made);
  block *overflow = calloc(1, sizeof *overflow + sizeof overflow->pairs[0]);
  if (!made || !overflow) {
    free(made);
    free(overflow);
    return false;
  }
  overflow->count = 1;
  overflow->pairs[0] = (sn_label_pair){.key = "labels", .text = "(overflow)"};
  made[OVERFLOW_INDEX].own = overflow;
  made[OVERFLOW_INDEX].id = OVERFLOW_INDEX;
  entries = made; /* the worker looks at it */
  if (!sn_vm_events_has_gvl_events()) sn_vm_events_watch_fibers(fiber_switched);
  return true;
}

static uint32_t take_index(void) {
  uint32_t index = free_list;
  if (index) {
    free_list = entries[index].next;
    return index;
  }
  return used < LIMIT ? used++ : 0;
}

static void let_go(entry *e) {
  entry *parent = entry_of(e->parent);
  if (parent) parent->children--;
  bytes_used -= e->own->bytes;
  free(e->own);
  e->own = NULL;
  e->id = 0;
  e->next = free_list;
  free_list = (uint32_t)(e - entries);
}

static bool is_needed(entry *e) {
  return e->children > 0 || atomic_load_explicit(&e->sampled, memory_order_relaxed) >= oldest;
}

/* An entry whose rows are still to be flushed stays as long as they, and so do those around it. */
static void end_entry(entry *e) {
  if (e->ended || index_of(e->id) == OVERFLOW_INDEX) return;
  e->ended = true;
  if (!is_needed(e)) {
    let_go(e);
  } else {
    e->next = ended_list;
    ended_list = (uint32_t)(e - entries);
  }
}

static uint32_t add_pair(sn_label_pair *all, uint32_t count, sn_label_pair pair) {
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(all[i].key, pair.key) != 0) continue;
    all[i] = pair;
    return count;
  }
  if (count < SN_LABELS_MOST) all[count++] = pair;
  return count;
}

static const char *copy_text(char **to, const char *text) {
  size_t length = strlen(text) + 1;
  char *copy = *to;
  memcpy(copy, text, length);
  *to += length;
  return copy;
}

/* NULL: no memory, or the bound is reached. */
static block *make_block(const sn_label_pair *all, uint32_t count) {
  size_t bytes = sizeof(block) + count * sizeof *all;
  for (uint32_t i = 0; i < count; i++) {
    bytes += strlen(all[i].key) + 1 + (all[i].text ? strlen(all[i].text) + 1 : 0);
  }
  if (bytes_used + bytes > BYTES_LIMIT) return NULL;
  block *made = malloc(bytes);
  if (!made) return NULL;
  *made = (block){.bytes = bytes, .count = count};
  char *texts = (char *)(made->pairs + count);
  for (uint32_t i = 0; i < count; i++) {
    made->pairs[i] = (sn_label_pair){.key = copy_text(&texts, all[i].key), .number = all[i].number};
    if (all[i].text) made->pairs[i].text = copy_text(&texts, all[i].text);
  }
  bytes_used += bytes;
  return made;
}

static uint32_t overflowed(void) {
  sn_count(&sn_the_engine.counters.labels_overflowed, 1);
  return entries ? OVERFLOW_INDEX : 0;
}

static uint32_t make_entry(const sn_label_pair *pairs, uint32_t count, uint32_t parent) {
  block *own = make_block(pairs, count);
  if (!own) return overflowed();
  uint32_t index = take_index();
  if (!index) {
    bytes_used -= own->bytes;
    free(own);
    return overflowed();
  }
  serial = serial + 1 < UINT32_MAX >> INDEX_BITS ? serial + 1 : 1; /* the last one stands in SN_LABELS_READ */
  entry *e = &entries[index];
  e->own = own;
  e->parent = parent;
  e->children = 0;
  e->ended = false;
  atomic_store_explicit(&e->sampled, 0, memory_order_relaxed);
  e->id = serial << INDEX_BITS | index;
  entry *around = entry_of(parent);
  if (around) around->children++;
  return e->id;
}

/* Those around it first; the inner one wins. */
static uint32_t collect_pairs(entry *e, sn_label_pair *all) {
  entry *chain[DEEPEST];
  uint32_t depth = 0, count = 0;
  for (; e && depth < DEEPEST; e = entry_of(e->parent)) chain[depth++] = e;
  while (depth > 0) {
    const block *own = atomic_load_explicit(&chain[--depth]->own, memory_order_acquire);
    for (uint32_t i = 0; i < own->count; i++) count = add_pair(all, count, own->pairs[i]);
  }
  return count;
}

/* -- what holds ---------------------------------------------------------------------------------------------------- */

static void hold(uint32_t id) {
  VALUE thread = rb_thread_current();
  sn_thread *t = sn_thread_of(thread);
  if (t) atomic_store_explicit(&t->labels, id, memory_order_relaxed);
  rb_thread_local_aset(thread, holder, id ? ULONG2NUM(id) : Qnil);
}

uint32_t sn_labels_here(void) {
  if (!entries) return 0;
  uint32_t id = read_holder(rb_thread_current());
  return entry_of(id) ? id : 0;
}

uint32_t sn_labels_enter(const sn_label_pair *pairs, uint32_t count) {
  if (!prepare()) return overflowed();
  uint32_t id = make_entry(pairs, count, sn_labels_here());
  hold(id);
  return id;
}

/* The entries from what holds here up to `id`; 0 where that is not among them. */
static uint32_t chain_to(uint32_t id, uint32_t *chain) {
  uint32_t depth = 0;
  for (uint32_t inner = sn_labels_here(); inner && depth < DEEPEST; inner = entry_of(inner)->parent) {
    chain[depth++] = inner;
    if (inner == id) return depth;
  }
  return 0;
}

void sn_labels_leave(uint32_t id, uint32_t previous) {
  uint32_t chain[DEEPEST];
  if (!entry_of(id)) return;
  const uint32_t depth = chain_to(id, chain);
  for (uint32_t i = 0; i < depth; i++) end_entry(entry_of(chain[i]));
  if (depth == 0) end_entry(entry_of(id)); /* another fiber, or its variables were cleared: nothing to bring back */
  if (depth > 0) hold(entry_of(previous) ? previous : 0); /* last: it may run the collector */
}

void sn_labels_abandon(uint32_t id) {
  entry *e = entry_of(id);
  if (e) end_entry(e);
}

void sn_labels_amend(uint32_t id, sn_label_pair pair) {
  sn_label_pair all[SN_LABELS_MOST];
  entry *e = entry_of(id);
  if (!e || index_of(id) == OVERFLOW_INDEX) return;
  uint32_t count = 0;
  block *old = e->own;
  for (uint32_t i = 0; i < old->count; i++) count = add_pair(all, count, old->pairs[i]);
  block *made = make_block(all, add_pair(all, count, pair));
  if (!made) return;
  atomic_store_explicit(&e->own, made, memory_order_release);
  old->next = replaced_list; /* a flush may be reading it */
  replaced_list = old;
}

uint32_t sn_labels_pairs(uint32_t id, sn_label_pair *all) {
  entry *e = entry_of(id);
  return e ? collect_pairs(e, all) : 0;
}

/* -- the sampler --------------------------------------------------------------------------------------------------- */

static void mark_sampled(uint32_t id) {
  const uint64_t generation = __atomic_load_n(&sn_the_engine.generation, __ATOMIC_RELAXED);
  atomic_store_explicit(&entries[index_of(id)].sampled, generation, memory_order_relaxed);
}

/* The worker may be late, and mark an entry that has just been let go, or has another owner: that one is then kept
 * until the next flush for nothing. Its note is of no use then (the id is another), and it does no harm. */
uint32_t sn_labels_note(sn_thread *t, bool with_gvl) {
  if (!entries) return 0;
  if (with_gvl) atomic_store_explicit(&t->labels, read_holder(t->thread), memory_order_relaxed);
  const uint32_t id = atomic_load_explicit(&t->labels, memory_order_relaxed);
  if (id != 0) mark_sampled(id);
  return id;
}

uint32_t sn_labels_of(sn_thread *t) {
  if (SN_LIKELY(!entries)) return 0;
  const uint32_t id = pinned == SN_LABELS_READ ? sn_labels_note(t, true) : pinned;
  if (!entry_of(id)) return 0;
  mark_sampled(id);
  return index_of(id);
}

void sn_labels_pin(uint32_t id) {
  pinned = id;
}

uint32_t sn_labels_last(const sn_thread *t) {
  return pinned == SN_LABELS_READ ? atomic_load_explicit(&t->labels, memory_order_relaxed) : pinned;
}

/* -- flushes ------------------------------------------------------------------------------------------------------- */

static sn_status add_labels(entry *e, sn_profile *out, uint32_t *set) {
  sn_label labels[SN_LABELS_MOST];
  sn_label_pair all[SN_LABELS_MOST];
  const uint32_t count = collect_pairs(e, all);
  for (uint32_t i = 0; i < count; i++) {
    const sn_label_pair *pair = &all[i];
    const char *text = pair->text;
    if (!text && pair->number == 0) text = "0"; /* readers of pprof drop the number 0 without a word */
    labels[i] = (sn_label){.num = pair->number};
    sn_status status = sn_profile_string(out, pair->key, strlen(pair->key), &labels[i].key);
    if (status == SN_OK && text) {
      status = sn_profile_string(out, text, strlen(text), &labels[i].str);
      labels[i].num = 0;
    }
    if (status != SN_OK) return status;
  }
  return sn_profile_labels(out, labels, count, set);
}

sn_status sn_labels_convert(const sn_raw_store *store, sn_profile *out, uint32_t **sets, uint32_t *count) {
  *sets = NULL;
  *count = 0;
  for (uint32_t i = 0; i < store->row_count; i++) {
    if (store->rows[i].key.labels >= *count) *count = store->rows[i].key.labels + 1;
  }
  if (*count <= 1) return SN_OK;
  *sets = calloc(*count, sizeof **sets);
  if (!*sets) return SN_NO_MEMORY;
  for (uint32_t i = 0; i < store->row_count; i++) {
    uint32_t index = store->rows[i].key.labels;
    if (index == 0 || (*sets)[index] != 0) continue;
    const sn_status status = add_labels(&entries[index], out, &(*sets)[index]);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

void sn_labels_release(uint64_t generation) {
  oldest = generation;
  while (replaced_list) {
    block *dead = replaced_list;
    replaced_list = dead->next;
    bytes_used -= dead->bytes;
    free(dead);
  }
  uint32_t index = ended_list;
  ended_list = 0;
  while (index) {
    entry *e = &entries[index];
    index = e->next;
    if (!is_needed(e)) {
      let_go(e);
    } else {
      e->next = ended_list;
      ended_list = (uint32_t)(e - entries);
    }
  }
}
