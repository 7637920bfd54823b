/* recorder: two raw stores (slots), one being written, one being read; each sample lands in exactly one flush.
 *
 * The protocol. `active` names the slot that samplers write. Each slot has one atomic word: free, sampler or
 * serialiser.
 *  sampler:     1. read active  2. CAS that slot free -> sampler; held? next round  3. read active again; changed? give
 *  the
 *               slot back, next round  4. write  5. slot := free. At most two rounds; then it gives up (counted) and
 *               books nothing, so that the next sample carries what this one could not. It never waits.
 *  serialiser:  1. flip: active := the other slot (which is empty and free)  2. waits until the old slot is free and
 *  takes
 *               it (a sampler inside is gone in microseconds)  3. reads  4. release: clears the slot, slot := free.
 * Only one serialiser at a time: the caller sees to that.
 * A plain pthread mutex would not do: the lock is taken in one thread and given back in another, and a forked child
 * must be able to reset it.
 *
 * Threads:  sampler side: whoever holds the GVL (jobs, GVL events, GC hooks); serialiser side: the flushing thread,
 * with or
 *           without the GVL. sn_recorder_reset: a forked child, alone.
 */
#ifndef SONDE_RECORD_RECORDER_H
#define SONDE_RECORD_RECORDER_H

#include <stdatomic.h>

#include "../core/memory.h"
#include "../core/raw_store.h"

typedef struct sn_slot {
  _Atomic uint32_t lock;
  sn_memory memory;
  sn_raw_store store;
} sn_slot;

typedef struct sn_recorder {
  _Atomic uint32_t active;
  sn_slot slots[2];
  _Atomic uint64_t lock_failures; /* samplers that found no slot in two rounds */
  _Atomic uint64_t flips;
} sn_recorder;

/* memory_limit: bytes for each slot, 0: none. */
SN_MUST_USE sn_status sn_recorder_init(sn_recorder *recorder, size_t memory_limit);
void sn_recorder_destroy(sn_recorder *recorder);

/* Sampler side. The store to write, or NULL (counted). Pair with sn_recorder_leave. */
SN_MUST_USE sn_raw_store *sn_recorder_enter(sn_recorder *recorder);
void sn_recorder_leave(sn_recorder *recorder, sn_raw_store *store);

/* Serialiser side. Flips and returns the slot that was written until now, locked for reading. */
SN_MUST_USE sn_raw_store *sn_recorder_flip(sn_recorder *recorder);
/* Clears what flip returned and gives it back. */
void sn_recorder_release(sn_recorder *recorder, sn_raw_store *store);

/* In a forked child: both slots emptied, both locks free, whoever held them. No other thread may exist. */
void sn_recorder_reset(sn_recorder *recorder);

/* Which slot samplers write: 0 or 1. */
uint32_t sn_recorder_active(const sn_recorder *recorder);

#endif
