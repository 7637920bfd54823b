#include "core/string_table.h"
#include "harness.h"

static sn_memory memory;

static uint32_t add(sn_string_table *table, const char *bytes, size_t length) {
  uint32_t id = SN_NO_ID;
  EXPECT_EQ(sn_string_table_intern(table, bytes, length, &id), SN_OK);
  return id;
}

static void interns(void) {
  sn_string_table table;
  char text[32];
  size_t length;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_string_table_init(&table, &memory), SN_OK);
  EXPECT_EQ(add(&table, "", 0), 0);
  EXPECT_EQ(add(&table, NULL, 0), 0);
  for (uint32_t round = 0; round < 2; round++) {
    for (uint32_t i = 1; i < 1000; i++) {
      snprintf(text, sizeof(text), "name %u", i);
      EXPECT_EQ(add(&table, text, strlen(text)), i);
    }
  }
  EXPECT_TEXT(sn_string_table_get(&table, 999, &length), "name 999");
  EXPECT_EQ(length, 8);
  EXPECT_EQ(sn_string_table_find(&table, "name 7", 6), 7);
  EXPECT_EQ(sn_string_table_find(&table, "name 7x", 7), SN_NO_ID);
  EXPECT(add(&table, "a\0b", 3) != add(&table, "a\0c", 3));
  sn_string_table_destroy(&table);
  EXPECT_EQ(memory.used, 0);
}

static void repairs(void) {
  sn_string_table table;
  size_t length;
  sn_memory_init(&memory, 0);
  EXPECT_EQ(sn_string_table_init(&table, &memory), SN_OK);
  const uint32_t id = add(&table, "caf\xE9", 4);
  EXPECT_TEXT(sn_string_table_get(&table, id, &length), "caf\xEF\xBF\xBD");
  EXPECT_EQ(add(&table, "caf\xEF\xBF\xBD", 6), id);
  sn_string_table_destroy(&table);
  EXPECT_EQ(memory.used, 0);
}

static void full(void) {
  sn_string_table table;
  char text[32];
  uint32_t id = 77, n = 1;
  sn_memory_init(&memory, 4000);
  EXPECT_EQ(sn_string_table_init(&table, &memory), SN_OK);
  sn_status status = SN_OK;
  while (status == SN_OK) {
    snprintf(text, sizeof(text), "name %u", n);
    id = 77;
    status = sn_string_table_intern(&table, text, strlen(text), &id);
    if (status == SN_OK) n++;
  }
  EXPECT_EQ(status, SN_FULL);
  EXPECT_EQ(id, 77);
  EXPECT_EQ(table.count, n);
  EXPECT_EQ(sn_string_table_find(&table, "name 1", 6), 1);
  EXPECT_EQ(sn_string_table_intern(&table, "long", SIZE_MAX / 2, &id), SN_TOO_LARGE);
  sn_string_table_destroy(&table);
}

int main(void) {
  test("equal texts have one id, and 0 is the empty text", interns);
  test("invalid UTF-8 is repaired before it is looked up", repairs);
  test("a full table answers so and stays usable", full);
  return finish(__FILE__);
}
