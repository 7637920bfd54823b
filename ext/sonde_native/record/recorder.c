/* recorder: see recorder.h for the protocol. Sampler side: whoever holds the GVL, never waiting. Serialiser side: the
 * flushing thread, one at a time. The only locks are the two words in the slots.
 *
 * Why each sample lands in exactly one flush: a sampler takes the slot's word and then looks at `active`; the
 * serialiser changes `active` and then takes the word. All four are sequentially consistent, so at least one sees the
 * other: either the sampler notices the flip and gives the slot back, or it was inside first and the serialiser waits
 * for it.
 */
#include "recorder.h"

#include <sched.h>
#include <time.h>

enum slot_lock { FREE, SAMPLER, SERIALISER };
enum { ROUNDS = 2, YIELDS = 100 };

sn_status sn_recorder_init(sn_recorder *recorder, size_t memory_limit) {
  atomic_init(&recorder->active, 0);
  atomic_init(&recorder->lock_failures, 0);
  atomic_init(&recorder->flips, 0);
  for (size_t i = 0; i < SN_ARRAY_LENGTH(recorder->slots); i++) {
    sn_slot *slot = &recorder->slots[i];
    atomic_init(&slot->lock, FREE);
    sn_memory_init(&slot->memory, memory_limit);
    const sn_status status = sn_raw_store_init(&slot->store, &slot->memory);
    if (status == SN_OK) continue;
    while (i-- > 0) sn_raw_store_destroy(&recorder->slots[i].store);
    return status;
  }
  return SN_OK;
}

void sn_recorder_destroy(sn_recorder *recorder) {
  for (size_t i = 0; i < SN_ARRAY_LENGTH(recorder->slots); i++) sn_raw_store_destroy(&recorder->slots[i].store);
}

static bool take(sn_slot *slot, uint32_t holder) {
  uint32_t expected = FREE;
  return atomic_compare_exchange_strong(&slot->lock, &expected, holder);
}

static void give_back(sn_slot *slot) {
  atomic_store(&slot->lock, FREE);
}

static sn_slot *slot_of(sn_recorder *recorder, const sn_raw_store *store) {
  sn_slot *slot = &recorder->slots[store == &recorder->slots[1].store];
  sn_assert(store == &slot->store);
  return slot;
}

sn_raw_store *sn_recorder_enter(sn_recorder *recorder) {
  for (int round = 0; round < ROUNDS; round++) {
    const uint32_t active = atomic_load(&recorder->active);
    sn_slot *slot = &recorder->slots[active];
    if (!take(slot, SAMPLER)) continue;
    if (SN_LIKELY(atomic_load(&recorder->active) == active)) return &slot->store;
    give_back(slot);
  }
  atomic_fetch_add_explicit(&recorder->lock_failures, 1, memory_order_relaxed);
  return NULL;
}

void sn_recorder_leave(sn_recorder *recorder, sn_raw_store *store) {
  sn_slot *slot = slot_of(recorder, store);
  sn_assert(atomic_load(&slot->lock) == SAMPLER);
  give_back(slot);
}

/* A sampler inside is gone in microseconds if it runs; if the kernel took it off the CPU, let it have ours. */
static void wait_a_little(int turn) {
  if (turn < YIELDS) {
    sched_yield();
  } else {
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000}, NULL);
  }
}

sn_raw_store *sn_recorder_flip(sn_recorder *recorder) {
  const uint32_t old = atomic_load(&recorder->active);
  sn_assert(atomic_load(&recorder->slots[1 - old].lock) != SERIALISER);
  atomic_store(&recorder->active, 1 - old);
  atomic_fetch_add_explicit(&recorder->flips, 1, memory_order_relaxed);
  sn_slot *slot = &recorder->slots[old];
  for (int turn = 0; !take(slot, SERIALISER); turn++) wait_a_little(turn);
  return &slot->store;
}

void sn_recorder_release(sn_recorder *recorder, sn_raw_store *store) {
  sn_slot *slot = slot_of(recorder, store);
  sn_assert(atomic_load(&slot->lock) == SERIALISER);
  sn_raw_store_reset(store);
  give_back(slot);
}

void sn_recorder_reset(sn_recorder *recorder) {
  for (size_t i = 0; i < SN_ARRAY_LENGTH(recorder->slots); i++) {
    sn_raw_store_reset(&recorder->slots[i].store);
    give_back(&recorder->slots[i]);
  }
  atomic_store(&recorder->lock_failures, 0);
  atomic_store(&recorder->flips, 0);
}

uint32_t sn_recorder_active(const sn_recorder *recorder) {
  return atomic_load(&recorder->active);
}
