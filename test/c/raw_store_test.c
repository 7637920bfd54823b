#include "core/raw_store.h"
#include "harness.h"

static sn_memory memory;

static void make(sn_raw_store *store, size_t limit) {
  sn_memory_init(&memory, limit);
  EXPECT_EQ(sn_raw_store_init(store, &memory), SN_OK);
}

static uint64_t frame_at(const sn_raw_store *store, uint32_t stack, uint32_t at) {
  uint32_t n;
  const uint32_t *ids = sn_stack_table_get(&store->stacks, stack, &n);
  return at < n ? store->locations[ids[at]].frame : 0;
}

static void expect_empty(const sn_raw_store *store) {
  EXPECT_EQ(store->stacks.count, 1);
  EXPECT_EQ(frame_at(store, 0, 0), SN_FRAME_OVERFLOW);
  EXPECT_EQ(store->row_count, 1);
  EXPECT(store->rows[0].key.stack == 0 && store->rows[0].key.thread == 0);
  for (uint32_t i = 0; i < SN_COLUMN_COUNT; i++) EXPECT_EQ(store->rows[0].values[i], 0);
}

static void empty(void) {
  sn_raw_store store;
  make(&store, 0);
  expect_empty(&store);
  sn_raw_store_destroy(&store);
  EXPECT_EQ(memory.used, 0);
}

static void known(void) {
  sn_raw_store store;
  const uint64_t frames[] = {5000, 6000, 5000}, aux[] = {1, 2, 1};
  const int32_t lines[] = {1, 2, 1}, other[] = {1, 2, -3};
  make(&store, 0);
  const uint32_t id = sn_raw_store_stack(&store, frames, aux, lines, 3);
  EXPECT_EQ(id, 1);
  EXPECT_EQ(atomic_load(&store.location_count), 3); /* with that of (overflow) */
  sn_raw_store_add(&store, (sn_row_key){.stack = id, .thread = 4}, SN_CPU_TIME, 10);
  const size_t used = memory.used;
  memory.fail_after = 0; /* nothing may be allocated now */
  EXPECT_EQ(sn_raw_store_stack(&store, frames, aux, lines, 3), id);
  sn_raw_store_add(&store, (sn_row_key){.stack = id, .thread = 4}, SN_CPU_TIME, 5);
  EXPECT_EQ(store.rows[1].values[SN_CPU_TIME], 15);
  EXPECT_EQ(memory.used, used);
  memory.fail_after = -1;
  EXPECT_EQ(sn_raw_store_stack(&store, frames, aux, other, 3), 2);
  EXPECT_EQ(sn_raw_store_stack(&store, frames, aux, lines, 2), 3);
  sn_raw_store_destroy(&store);
}

/* Methods made of one block share a frame; aux tells them apart. */
static void second_word(void) {
  sn_raw_store store;
  const uint64_t frames[] = {5000, 6000}, one[] = {0, 7}, other[] = {0, 8}, none[] = {0, 0};
  const int32_t lines[] = {1, 2};
  make(&store, 0);
  const uint32_t id = sn_raw_store_stack(&store, frames, one, lines, 2);
  EXPECT_EQ(id, 1);
  EXPECT_EQ(sn_raw_store_stack(&store, frames, other, lines, 2), 2);
  EXPECT_EQ(sn_raw_store_stack(&store, frames, NULL, lines, 2), 3);
  EXPECT_EQ(sn_raw_store_stack(&store, frames, none, lines, 2), 3); /* NULL stands for zeros */
  EXPECT_EQ(sn_raw_store_stack(&store, frames, one, lines, 2), id);
  EXPECT_EQ(atomic_load(&store.location_count), 1 + 4); /* the leaf is one location in all */
  const uint64_t auxes[] = {0, 7, 8, 0};
  for (uint32_t stack = 1; stack <= 3; stack++) {
    uint32_t n;
    const uint32_t *ids = sn_stack_table_get(&store.stacks, stack, &n);
    EXPECT_EQ(n, 2);
    EXPECT_EQ(store.locations[ids[1]].aux, auxes[stack]);
  }
  sn_raw_store_destroy(&store);
}

static void no_frames(void) {
  sn_raw_store store;
  make(&store, 0);
  const uint32_t id = sn_raw_store_stack(&store, NULL, NULL, NULL, 0);
  EXPECT_EQ(frame_at(&store, id, 0), SN_FRAME_NATIVE);
  EXPECT_EQ(sn_raw_store_stack(&store, NULL, NULL, NULL, 0), id);
  sn_raw_store_destroy(&store);
}

static void rows(void) {
  sn_raw_store store;
  make(&store, 0);
  const sn_row_key keys[] = {{0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {0, 1, 1, 1, 0}, {0, 1, 1, 1, 1}};
  for (uint32_t i = 0; i < SN_ARRAY_LENGTH(keys); i++) sn_raw_store_add(&store, keys[i], SN_WALL_TIME, (int64_t)i);
  sn_raw_store_add(&store, (sn_row_key){0}, SN_WALL_TIME, 100);
  EXPECT_EQ(store.row_count, 6);
  EXPECT_EQ(store.rows[0].values[SN_WALL_TIME], 100);
  for (uint32_t i = 0; i < SN_ARRAY_LENGTH(keys); i++) EXPECT_EQ(store.rows[i + 1].values[SN_WALL_TIME], i);
  sn_raw_store_destroy(&store);
}

static void details(void) {
  sn_raw_store store;
  make(&store, 0);
  const sn_raw_detail some[] = {
      {4096, SN_DETAIL_CLASS, 0}, {4097, SN_DETAIL_CLASS, 0}, {4096, SN_DETAIL_LIVE, 0}, {4096, SN_DETAIL_LIVE, 7}};
  EXPECT_EQ(sn_detail_table_intern(&store.details, (sn_raw_detail){0}), 0);
  for (int turn = 0; turn < 2; turn++) {
    for (uint32_t i = 0; i < SN_ARRAY_LENGTH(some); i++) {
      EXPECT_EQ(sn_detail_table_intern(&store.details, some[i]), i + 1);
    }
  }
  store.memory->limit = 1; /* full: one more is nothing, not a failure */
  uint32_t last = 1;
  for (uint64_t word = 5000; last != 0 && word < 1000000; word++) {
    last = sn_detail_table_intern(&store.details, (sn_raw_detail){word, SN_DETAIL_CLASS, 0});
  }
  EXPECT_EQ(last, 0);
  sn_raw_store_reset(&store);
  EXPECT_EQ(atomic_load(&store.details.count), 1);
  sn_raw_store_destroy(&store);
}

/* Writes until it overflows for a while; returns how much was written. */
static int64_t overfill(sn_raw_store *store) {
  uint64_t seed = 1, frames[20];
  int32_t lines[20];
  int64_t written = 0;
  for (uint32_t i = 0; i < 3000; i++) {
    for (uint32_t k = 0; k < 20; k++) frames[k] = 5000 + below(&seed, 400), lines[k] = (int32_t)below(&seed, 3);
    const uint32_t stack = sn_raw_store_stack(store, frames, NULL, lines, 20);
    sn_raw_store_add(store, (sn_row_key){.stack = stack, .thread = 1 + i % 3}, SN_CPU_TIME, i);
    written += i;
  }
  return written;
}

static int64_t total(const sn_raw_store *store) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < store->row_count; i++) sum += store->rows[i].values[SN_CPU_TIME];
  return sum;
}

static void overflows(void) {
  sn_raw_store store;
  make(&store, 100000);
  int64_t written = overfill(&store);
  EXPECT_EQ(total(&store), written);
  EXPECT(store.overflowed_stacks > 0);
  EXPECT(memory.used <= 100000 && memory.peak <= 100000);
  EXPECT(store.stacks.count > 100);
  sn_raw_store_reset(&store);
  expect_empty(&store);
  EXPECT_EQ(store.overflowed_stacks, 0);
  written = overfill(&store);
  EXPECT_EQ(total(&store), written);
  sn_raw_store_destroy(&store);
  EXPECT_EQ(memory.used, 0);
}

static void overflowed_rows(void) {
  sn_raw_store store;
  make(&store, 20000);
  for (uint32_t i = 0; i < 1000; i++) sn_raw_store_add(&store, (sn_row_key){.thread = i}, SN_CPU_TIME, 1);
  EXPECT(store.overflowed_rows > 0);
  EXPECT_EQ(store.rows[0].values[SN_CPU_TIME], 1 + (int64_t)store.overflowed_rows);
  EXPECT_EQ(total(&store), 1000);
  sn_raw_store_destroy(&store);
}

static void reset(void) {
  sn_raw_store store;
  uint64_t frames[100];
  int32_t lines[100] = {0};
  make(&store, 0);
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < 30000; i++) {
      for (uint32_t k = 0; k < 100; k++) frames[k] = 5000 + i * 3 + k;
      const uint32_t stack = sn_raw_store_stack(&store, frames, NULL, lines, 100);
      sn_raw_store_add(&store, (sn_row_key){.stack = stack}, SN_CPU_TIME, 1);
    }
    EXPECT(memory.used > 10000000);
    memory.fail_after = round == 0 ? -1 : 0; /* a reset never fails */
    sn_raw_store_reset(&store);
    memory.fail_after = -1;
    expect_empty(&store);
    EXPECT(round == 1 || memory.used < 1200000);
  }
  sn_raw_store_reset(&store);
  sn_raw_store_reset(&store);
  expect_empty(&store);
  sn_raw_store_destroy(&store);
  EXPECT_EQ(memory.used, 0);
}

static void no_memory(void) {
  sn_raw_store store;
  for (long k = 0;; k++) {
    sn_memory_init(&memory, 0);
    memory.fail_after = k;
    const sn_status status = sn_raw_store_init(&store, &memory);
    if (status == SN_OK) break;
    EXPECT_EQ(status, SN_NO_MEMORY);
    EXPECT_EQ(memory.used, 0);
  }
  sn_raw_store_destroy(&store);
}

int main(void) {
  test("a new store has stack 0, (overflow), and row 0", empty);
  test("a known stack and row cost no allocation", known);
  test("frames are told apart by their second word", second_word);
  test("a stack without frames is (native code)", no_frames);
  test("rows differ by stack, thread, labels, state and detail", rows);
  test("details get dense ids, 0 is nothing, and a full table answers 0", details);
  test("past the memory limit nothing is lost, and what overflowed is counted", overflows);
  test("rows that do not fit land in row 0", overflowed_rows);
  test("a reset forgets all, keeps about a megabyte, and cannot fail", reset);
  test("init fails cleanly without memory", no_memory);
  return finish(__FILE__);
}
