#include "core/label_set.h"
#include "harness.h"

static sn_memory memory;

static uint32_t add(sn_label_sets *sets, const sn_label *labels, uint32_t n) {
  uint32_t id = SN_NO_ID;
  EXPECT_EQ(sn_label_sets_intern(sets, labels, n, &id), SN_OK);
  return id;
}

static void order(void) {
  sn_label_sets sets;
  uint32_t n;
  const sn_label one[] = {{.key = 3, .str = 1}, {.key = 1, .num = -5, .num_unit = 2}, {.key = 2, .str = 9}};
  const sn_label same[] = {
      {.key = 1, .num = 5}, {.key = 2, .str = 9}, {.key = 1, .num = -5, .num_unit = 2}, {.key = 3, .str = 1}};
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_label_sets_init(&sets, &memory), SN_OK);
  EXPECT_EQ(add(&sets, NULL, 0), 0);
  const uint32_t id = add(&sets, one, 3);
  EXPECT_EQ(id, 1);
  EXPECT_EQ(add(&sets, same, 4), id);
  EXPECT_EQ(add(&sets, one, 2), 2);
  const sn_label *labels = sn_label_sets_get(&sets, id, &n);
  EXPECT_EQ(n, 3);
  EXPECT(labels[0].key == 1 && labels[1].key == 2 && labels[2].key == 3);
  EXPECT_EQ(labels[0].num, -5);
  sn_label_sets_destroy(&sets);
  EXPECT_EQ(memory.used, 0);
}

static void bound(void) {
  sn_label_sets sets;
  sn_label labels[SN_LABEL_SET_MAX + 1] = {{0}};
  uint32_t id = 77;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_label_sets_init(&sets, &memory), SN_OK);
  for (uint32_t i = 0; i <= SN_LABEL_SET_MAX; i++) labels[i].key = SN_LABEL_SET_MAX - i;
  EXPECT_EQ(sn_label_sets_intern(&sets, labels, SN_LABEL_SET_MAX + 1, &id), SN_TOO_LARGE);
  EXPECT_EQ(id, 77);
  EXPECT_EQ(add(&sets, labels, SN_LABEL_SET_MAX), 1);
  sn_label_sets_destroy(&sets);
}

int main(void) {
  test("the order of labels does not matter, and of one key the last wins", order);
  test("a set has a bound", bound);
  return finish(__FILE__);
}
