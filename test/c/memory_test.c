#include "core/memory.h"
#include "harness.h"

static void account(void) {
  sn_memory memory;
  sn_memory_init(&memory, 0);
  void *block = sn_memory_alloc(&memory, 100);
  EXPECT(block != NULL);
  EXPECT_EQ(memory.used, 100);
  block = sn_memory_realloc(&memory, block, 100, 30);
  EXPECT_EQ(memory.used, 30);
  EXPECT_EQ(memory.peak, 100);
  sn_memory_free(&memory, block, 30);
  sn_memory_free(&memory, NULL, 0);
  EXPECT_EQ(memory.used, 0);
}

static void limit(void) {
  sn_memory memory;
  sn_memory_init(&memory, 100);
  void *block = sn_memory_alloc(&memory, 100);
  EXPECT(block != NULL);
  EXPECT(sn_memory_alloc(&memory, 1) == NULL);
  EXPECT(sn_memory_over_limit(&memory, 1));
  EXPECT_EQ(sn_memory_failure(&memory, 1), SN_FULL);
  EXPECT(!sn_memory_over_limit(&memory, 0));
  EXPECT_EQ(memory.used, 100);
  sn_memory_free(&memory, block, 100);
}

static void growth(void) {
  sn_memory memory;
  uint32_t *array = NULL, capacity = 0;
  sn_memory_init(&memory, 1000);
  for (uint32_t i = 0; i < 1000; i++) {
    const sn_status status = sn_memory_grow(&memory, (void **)&array, &capacity, i + 1, sizeof(*array));
    if (status != SN_OK) {
      EXPECT_EQ(status, SN_FULL);
      EXPECT(i >= 200); /* most of the 250 that the limit allows */
      break;
    }
    array[i] = i;
  }
  for (uint32_t i = 0; i < 200; i++) EXPECT_EQ(array[i], i);
  sn_memory_free(&memory, array, capacity * sizeof(*array));
  EXPECT_EQ(memory.used, 0);
}

static void overflow(void) {
  sn_memory memory;
  void *array = NULL;
  size_t capacity = 0;
  uint32_t small = 0;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_memory_grow_large(&memory, &array, &capacity, SIZE_MAX / 2, 16), SN_FULL);
  EXPECT_EQ(sn_memory_grow(&memory, &array, &small, 10, SIZE_MAX / 4), SN_FULL);
  EXPECT(array == NULL && capacity == 0 && small == 0);
  EXPECT_EQ(memory.used, 0);
}

static void injected(void) {
  sn_memory memory;
  sn_memory_init(&memory, 0);
  memory.fail_after = 1;
  void *block = sn_memory_alloc(&memory, 8);
  EXPECT(block != NULL);
  EXPECT(sn_memory_alloc(&memory, 8) == NULL);
  EXPECT_EQ(sn_memory_failure(&memory, 8), SN_NO_MEMORY);
  EXPECT(sn_memory_realloc(&memory, block, 8, 16) == NULL);
  EXPECT_EQ(memory.used, 8);
  sn_memory_free(&memory, block, 8);
}

static void trimming(void) {
  sn_memory memory;
  uint32_t *array = NULL, capacity = 0;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_memory_grow(&memory, (void **)&array, &capacity, 1000, sizeof(*array)), SN_OK);
  sn_memory_trim(&memory, (void **)&array, &capacity, 2000, sizeof(*array));
  EXPECT_EQ(capacity, 1000);
  memory.fail_after = 0;
  sn_memory_trim(&memory, (void **)&array, &capacity, 10, sizeof(*array));
  EXPECT_EQ(capacity, 1000);
  memory.fail_after = -1;
  sn_memory_trim(&memory, (void **)&array, &capacity, 10, sizeof(*array));
  EXPECT_EQ(capacity, 10);
  EXPECT_EQ(memory.used, 10 * sizeof(*array));
  sn_memory_trim(&memory, (void **)&array, &capacity, 0, sizeof(*array));
  EXPECT(array == NULL && memory.used == 0);
}

int main(void) {
  test("the account knows what is used and what the peak was", account);
  test("an allocation past the limit fails and changes nothing", limit);
  test("an array grows to nearly the limit and keeps its contents", growth);
  test("sizes that overflow are refused", overflow);
  test("injected failures last and look like the C library's", injected);
  test("trimming gives storage back, or keeps it where that fails", trimming);
  return finish(__FILE__);
}
