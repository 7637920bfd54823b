#include "core/ring_buffer.h"
#include "harness.h"

static sn_memory memory;

static void first_in_first_out(void) {
  sn_ring_buffer ring;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, sizeof(uint64_t), 5), SN_OK);
  EXPECT_EQ(ring.capacity, 8);
  memory.fail_after = 0; /* nothing is allocated after init */
  uint64_t in = 0, out = 0, value = 0, seed = 1;
  for (int round = 0; round < 10000; round++) {
    for (uint32_t n = below(&seed, 9); n > 0 && in - out < 8; n--, in++) EXPECT(sn_ring_buffer_push(&ring, &in, in));
    for (uint32_t n = below(&seed, 9); n > 0 && out < in; n--, out++) {
      EXPECT(sn_ring_buffer_pop(&ring, &value) && value == out);
    }
  }
  while (sn_ring_buffer_pop(&ring, &value)) EXPECT_EQ(value, out++);
  EXPECT_EQ(in, out);
  EXPECT_EQ(sn_ring_buffer_take_losses(&ring, &value), 0);
  sn_ring_buffer_destroy(&ring);
  EXPECT_EQ(memory.used, 0);
}

static void losses(void) {
  sn_ring_buffer ring;
  uint64_t first = 77;
  uint8_t record[3] = {1, 2, 3};
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, sizeof(record), 4), SN_OK);
  for (uint64_t now = 100; now < 110; now++) EXPECT_EQ(sn_ring_buffer_push(&ring, record, now), now < 104);
  EXPECT_EQ(sn_ring_buffer_take_losses(&ring, &first), 6);
  EXPECT_EQ(first, 104);
  EXPECT_EQ(sn_ring_buffer_take_losses(&ring, &first), 0);
  EXPECT(!sn_ring_buffer_push(&ring, record, 200));
  EXPECT(!sn_ring_buffer_push(&ring, record, 201));
  EXPECT_EQ(sn_ring_buffer_take_losses(&ring, &first), 2);
  EXPECT_EQ(first, 200);
  sn_ring_buffer_reset(&ring);
  EXPECT(!sn_ring_buffer_pop(&ring, record));
  sn_ring_buffer_destroy(&ring);
}

static void bad_sizes(void) {
  sn_ring_buffer ring;
  sn_memory_init(&memory, 1000);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, 0, 4), SN_INVALID);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, 4, 0), SN_INVALID);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, 4, UINT32_MAX), SN_INVALID);
  EXPECT_EQ(sn_ring_buffer_init(&ring, &memory, 400, 4), SN_FULL);
  EXPECT_EQ(memory.used, 0);
}

int main(void) {
  test("records come out in the order they went in", first_in_first_out);
  test("what finds no room is counted, with the time of the first", losses);
  test("sizes that make no sense are refused", bad_sizes);
  return finish(__FILE__);
}
