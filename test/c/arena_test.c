#include "core/arena.h"
#include "harness.h"

static void keeps(void) {
  sn_memory memory;
  sn_arena arena;
  char *blocks[200];
  sn_memory_init(&memory, 0);
  sn_arena_init(&arena, &memory);
  for (uint32_t i = 1; i < 200; i++) {
    EXPECT_EQ(sn_arena_alloc(&arena, i, &blocks[i]), SN_OK);
    memset(blocks[i], (int)i, i);
  }
  for (uint32_t i = 1; i < 200; i++) {
    for (uint32_t k = 0; k < i; k++) EXPECT_EQ((uint8_t)blocks[i][k], i);
  }
  sn_arena_destroy(&arena);
  EXPECT_EQ(memory.used, 0);
}

static void limits(void) {
  sn_memory memory;
  sn_arena arena;
  char *block = NULL;
  sn_memory_init(&memory, 300);
  sn_arena_init(&arena, &memory);
  EXPECT_EQ(sn_arena_alloc(&arena, 200, &block), SN_OK);
  EXPECT_EQ(sn_arena_alloc(&arena, 20, &block), SN_OK); /* less than a chunk is left */
  EXPECT_EQ(sn_arena_alloc(&arena, 100, &block), SN_FULL);
  EXPECT_EQ(sn_arena_alloc(&arena, SIZE_MAX - 3, &block), SN_FULL);
  sn_arena_destroy(&arena);
}

int main(void) {
  test("blocks do not overlap and stay", keeps);
  test("near the limit it takes no more than is asked for", limits);
  return finish(__FILE__);
}
