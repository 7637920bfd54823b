/* ring_buffer: records of one size, from one producer (perhaps a signal handler) to one consumer.
 *
 * Never waits, never allocates after init. A record that finds the ring full is lost and counted: the loss record says
 * how many were lost since the consumer last asked, and when the first of them was. Threads:  push: one thread at a
 * time (handlers must not nest); pop and losses: one thread at a time. reset: alone. Contexts: push: signal, gc, gvl,
 * nogvl. The others: gvl, nogvl.
 */
#ifndef SONDE_CORE_RING_BUFFER_H
#define SONDE_CORE_RING_BUFFER_H

#include <stdatomic.h>

#include "base.h"
#include "memory.h"
#include "status.h"

typedef struct sn_ring_buffer {
  /* fixed after init */
  sn_memory *memory; /* borrowed */
  uint8_t *records;  /* owned */
  uint32_t record_size;
  uint32_t capacity; /* a power of two */
  /* written by the producer */
  _Atomic uint32_t head; /* how many were ever pushed, modulo 2^32 */
  _Atomic uint64_t first_loss;
  /* written by the consumer */
  _Atomic uint32_t tail;
  /* written by both: counted up by the producer, set to 0 by the consumer */
  _Atomic uint32_t lost;
} sn_ring_buffer;

/* Room for at least `capacity` records (rounded up to a power of two, at most 2^31). SN_OK, SN_FULL, SN_NO_MEMORY, or
 * SN_INVALID for a size or capacity of 0. */
SN_MUST_USE sn_status sn_ring_buffer_init(sn_ring_buffer *ring, sn_memory *memory, uint32_t record_size,
                                          uint32_t capacity);
void sn_ring_buffer_destroy(sn_ring_buffer *ring);
/* Forgets records and losses; nobody else may use the ring meanwhile. */
void sn_ring_buffer_reset(sn_ring_buffer *ring);

/* Copies a record in; false where it was lost. `now` is for the loss record, in any unit. */
bool sn_ring_buffer_push(sn_ring_buffer *ring, const void *record, uint64_t now);
/* Copies the oldest record out; false where there is none. */
bool sn_ring_buffer_pop(sn_ring_buffer *ring, void *record);
/* How many were lost since the last call, and the `now` of the first of them (untouched where there was none). */
uint32_t sn_ring_buffer_take_losses(sn_ring_buffer *ring, uint64_t *first);

#endif
