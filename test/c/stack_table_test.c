#include "core/stack_table.h"
#include "harness.h"

static sn_memory memory;

static void interns(void) {
  sn_stack_table table;
  uint32_t ids[64], id, length;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_stack_table_init(&table, &memory), SN_OK);
  for (uint32_t i = 0; i < 64; i++) ids[i] = i * 7;
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t n = 0; n < 64; n++) {
      EXPECT_EQ(sn_stack_table_intern(&table, ids, n, &id), SN_OK);
      EXPECT_EQ(id, n);
    }
  }
  const uint32_t *stack = sn_stack_table_get(&table, 63, &length);
  EXPECT_EQ(length, 63);
  EXPECT(memcmp(stack, ids, 63 * sizeof(*ids)) == 0);
  EXPECT(sn_stack_table_get(&table, 0, &length) == NULL && length == 0);
  sn_stack_table_reset(&table);
  EXPECT_EQ(sn_stack_table_intern(&table, ids, 5, &id), SN_OK);
  EXPECT_EQ(id, 0);
  sn_stack_table_destroy(&table);
  EXPECT_EQ(memory.used, 0);
}

static void full(void) {
  sn_stack_table table;
  uint32_t ids[10] = {0}, id = 77, n = 0;
  sn_memory_init(&memory, 2000);
  EXPECT_EQ(sn_stack_table_init(&table, &memory), SN_OK);
  sn_status status = SN_OK;
  while (status == SN_OK) {
    ids[0] = n;
    id = 77;
    status = sn_stack_table_intern(&table, ids, 10, &id);
    n += status == SN_OK;
  }
  EXPECT_EQ(status, SN_FULL);
  EXPECT_EQ(id, 77);
  EXPECT_EQ(table.count, n);
  ids[0] = 0;
  EXPECT_EQ(sn_stack_table_intern(&table, ids, 10, &id), SN_OK);
  EXPECT_EQ(id, 0);
  sn_stack_table_destroy(&table);
}

static void pushed(void) {
  sn_stack_table table;
  uint32_t *room, length;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_stack_table_init(&table, &memory), SN_OK);
  EXPECT_EQ(sn_stack_table_reserve(&table, 100, &room), SN_OK);
  memset(room, 0xff, 100 * sizeof(*room)); /* not pushed: never was */
  EXPECT_EQ(sn_stack_table_reserve(&table, 2, &room), SN_OK);
  room[0] = 5;
  room[1] = 6;
  EXPECT_EQ(sn_stack_table_push(&table, 2), 0);
  const uint32_t *stack = sn_stack_table_get(&table, 0, &length);
  EXPECT(length == 2 && stack[0] == 5 && stack[1] == 6);
  sn_stack_table_destroy(&table);
}

int main(void) {
  test("equal stacks have one id, dense from 0, until a reset", interns);
  test("a full table answers so and stays usable", full);
  test("an owner with its own index may push what it wrote", pushed);
  return finish(__FILE__);
}
