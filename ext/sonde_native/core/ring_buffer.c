/* ring_buffer: see ring_buffer.h. Producer: whoever may not allocate or wait (signal handlers, EXITED events, hooks in
 * other Ractors). Consumer: the next job, with the GVL. No locks: head and tail are each written by one side only.
 *
 * signal: push uses atomics and memcpy only.
 */
#include "ring_buffer.h"

#include <string.h>

sn_status sn_ring_buffer_init(sn_ring_buffer *ring, sn_memory *memory, uint32_t record_size, uint32_t capacity) {
  if (record_size == 0 || capacity == 0 || capacity > UINT32_C(1) << 31) return SN_INVALID;
  uint32_t rounded = 1;
  while (rounded < capacity) rounded *= 2;
  if (record_size > SIZE_MAX / rounded) return SN_FULL;
  const size_t size = (size_t)rounded * record_size;
  uint8_t *records = sn_memory_alloc(memory, size);
  if (records == NULL) return sn_memory_failure(memory, size);
  ring->memory = memory;
  ring->records = records;
  ring->record_size = record_size;
  ring->capacity = rounded;
  sn_ring_buffer_reset(ring);
  return SN_OK;
}

void sn_ring_buffer_destroy(sn_ring_buffer *ring) {
  sn_memory_free(ring->memory, ring->records, (size_t)ring->capacity * ring->record_size);
  ring->records = NULL;
}

void sn_ring_buffer_reset(sn_ring_buffer *ring) {
  atomic_store(&ring->head, 0);
  atomic_store(&ring->tail, 0);
  atomic_store(&ring->lost, 0);
  atomic_store(&ring->first_loss, 0);
}

static uint8_t *record_at(const sn_ring_buffer *ring, uint32_t position) {
  return ring->records + (size_t)(position & (ring->capacity - 1)) * ring->record_size;
}

/* The time is stored before the count leaves 0, and only then; whenever the consumer took the count meanwhile, the
 * exchange fails, and the loss becomes the first of the next record. */
static void count_loss(sn_ring_buffer *ring, uint64_t now) {
  uint32_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
  do {
    if (lost == 0) atomic_store_explicit(&ring->first_loss, now, memory_order_relaxed);
    if (lost == UINT32_MAX) return;
  } while (
      !atomic_compare_exchange_weak_explicit(&ring->lost, &lost, lost + 1, memory_order_release, memory_order_relaxed));
}

bool sn_ring_buffer_push(sn_ring_buffer *ring, const void *record, uint64_t now) {
  const uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
  const uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
  if (head - tail >= ring->capacity) {
    count_loss(ring, now);
    return false;
  }
  memcpy(record_at(ring, head), record, ring->record_size);
  atomic_store_explicit(&ring->head, head + 1, memory_order_release);
  return true;
}

bool sn_ring_buffer_pop(sn_ring_buffer *ring, void *record) {
  const uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
  const uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
  if (head == tail) return false;
  memcpy(record, record_at(ring, tail), ring->record_size);
  atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
  return true;
}

uint32_t sn_ring_buffer_take_losses(sn_ring_buffer *ring, uint64_t *first) {
  uint32_t lost = atomic_load_explicit(&ring->lost, memory_order_acquire);
  for (;;) {
    if (lost == 0) return 0;
    const uint64_t time = atomic_load_explicit(&ring->first_loss, memory_order_relaxed);
    /* Only this side lowers the count, so success means: no loss since, and the time belongs to it. */
    if (atomic_compare_exchange_weak_explicit(&ring->lost, &lost, 0, memory_order_acq_rel, memory_order_acquire)) {
      *first = time;
      return lost;
    }
  }
}
