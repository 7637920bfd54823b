/* One producer that never waits, one consumer: what was accepted comes out once and in order, what was refused is
 * counted, and the first time of each loss record is that of a refused record. Run under TSan and under ASan. */
#include <pthread.h>
#include <sched.h>

#include "core/ring_buffer.h"
#include "harness.h"

enum { RECORDS = 400000 };

static sn_ring_buffer ring;
static uint8_t refused[RECORDS];
static uint64_t refusals;
static _Atomic bool done;

static void *producer(void *argument) {
  (void)argument;
  for (uint64_t i = 0; i < RECORDS; i++) {
    if (sn_ring_buffer_push(&ring, &i, i)) continue;
    refused[i] = 1;
    refusals++;
    if (i % 64 == 0) sched_yield();
  }
  atomic_store(&done, true);
  return NULL;
}

static void nothing_unaccounted(void) {
  static uint64_t firsts[RECORDS];
  sn_memory memory;
  pthread_t thread;
  uint64_t value, last = 0, taken = 0, lost = 0, first_count = 0, first = 0;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, sizeof(uint64_t), 64), SN_OK);
  EXPECT_EQ(pthread_create(&thread, NULL, producer, NULL), 0);
  for (bool ended = false; !ended;) {
    ended = atomic_load(&done);
    while (sn_ring_buffer_pop(&ring, &value)) {
      EXPECT(taken == 0 || value > last);
      last = value;
      taken++;
    }
    const uint32_t losses = sn_ring_buffer_take_losses(&ring, &first);
    lost += losses;
    if (losses > 0) firsts[first_count++] = first;
  }
  pthread_join(thread, NULL);
  EXPECT_EQ(lost, refusals);
  EXPECT_EQ(taken + lost, RECORDS);
  for (uint64_t i = 0; i < first_count; i++) {
    EXPECT(refused[firsts[i]]);
    EXPECT(i == 0 || firsts[i] > firsts[i - 1]);
  }
  sn_ring_buffer_destroy(&ring);
}

int main(void) {
  test("every record is either taken once and in order, or counted as lost", nothing_unaccounted);
  return finish(__FILE__);
}
