#include "core/hash_index.h"
#include "harness.h"

static uint32_t find(const sn_hash_index *index, uint32_t hash, uint32_t wanted) {
  uint32_t cursor = hash, id;
  while ((id = sn_hash_index_next(index, hash, &cursor)) != SN_NO_ID) {
    if (id == wanted) return id;
  }
  return SN_NO_ID;
}

static void fill(sn_hash_index *index, uint32_t n, uint32_t hashes) {
  for (uint32_t i = 0; i < n; i++) {
    EXPECT_EQ(sn_hash_index_reserve(index), SN_OK);
    sn_hash_index_put(index, i % hashes, i);
  }
}

static void finds(void) {
  sn_memory memory;
  sn_hash_index index;
  sn_memory_init(&memory, 0);
  sn_hash_index_init(&index, &memory);
  EXPECT_EQ(find(&index, 3, 3), SN_NO_ID);
  fill(&index, 3000, 700); /* several ids to a hash */
  for (uint32_t i = 0; i < 3000; i++) EXPECT_EQ(find(&index, i % 700, i), i);
  EXPECT_EQ(find(&index, 701, 1), SN_NO_ID);
  EXPECT(index.count * 4 <= index.capacity * 3);
  sn_hash_index_destroy(&index);
  EXPECT_EQ(memory.used, 0);
}

static void resets(void) {
  sn_memory memory;
  sn_hash_index index;
  sn_memory_init(&memory, 0);
  sn_hash_index_init(&index, &memory);
  fill(&index, 1000, 1000);
  sn_hash_index_reset(&index, 64);
  EXPECT_EQ(index.capacity, 64);
  for (uint32_t i = 0; i < 1000; i++) EXPECT_EQ(find(&index, i, i), SN_NO_ID);
  fill(&index, 1000, 10);
  memory.fail_after = 0;
  sn_hash_index_reset(&index, 64);
  EXPECT(index.capacity > 64);
  EXPECT_EQ(find(&index, 1, 1), SN_NO_ID);
  sn_hash_index_destroy(&index);
}

static void full(void) {
  sn_memory memory;
  sn_hash_index index;
  sn_memory_init(&memory, 64 * sizeof(sn_hash_slot));
  sn_hash_index_init(&index, &memory);
  uint32_t n = 0;
  while (sn_hash_index_reserve(&index) == SN_OK) {
    sn_hash_index_put(&index, n, n);
    n++;
  }
  EXPECT_EQ(sn_hash_index_reserve(&index), SN_FULL);
  EXPECT(n >= 20);
  for (uint32_t i = 0; i < n; i++) EXPECT_EQ(find(&index, i, i), i);
  EXPECT_EQ(find(&index, n, n), SN_NO_ID);
  sn_hash_index_destroy(&index);
}

int main(void) {
  test("every id put is found under its hash, and no other", finds);
  test("a reset forgets everything, whether or not storage can be given back", resets);
  test("a full index stays usable", full);
  return finish(__FILE__);
}
