/* The input is a list of operations on a raw store (with a small limit) and on a recorder's reset; sums must agree, and
 * the tables must stay what they promise. */
#include "core/raw_store.h"
#include "core/string_table.h"
#include "core/utf8.h"
#include "harness.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

typedef struct input {
  const uint8_t *at, *end;
} input;

static uint8_t take(input *in) {
  return in->at < in->end ? *in->at++ : 0;
}

static void must(bool condition) {
  if (!condition) abort();
}

static void check_store(const sn_raw_store *store, int64_t booked) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < store->row_count; i++) {
    must(store->rows[i].key.stack < store->stacks.count);
    sum += store->rows[i].values[SN_CPU_TIME];
  }
  must(sum == booked);
  for (uint32_t s = 0; s < store->stacks.count; s++) {
    uint32_t n;
    const uint32_t *ids = sn_stack_table_get(&store->stacks, s, &n);
    must(n > 0);
    for (uint32_t i = 0; i < n; i++) must(ids[i] < atomic_load(&store->location_count));
  }
}

static void book(sn_raw_store *store, input *in, int64_t *booked) {
  uint64_t frames[64];
  int32_t lines[64];
  const uint32_t n = take(in) % 64;
  for (uint32_t i = 0; i < n; i++) {
    frames[i] = take(in);
    lines[i] = (int8_t)take(in);
  }
  const uint32_t stack = sn_raw_store_stack(store, frames, NULL, lines, n);
  must(stack == 0 || sn_raw_store_stack(store, frames, NULL, lines, n) == stack);
  const sn_row_key key = {.stack = stack, .thread = take(in), .state = take(in) % SN_STATE_COUNT};
  const int64_t value = take(in);
  sn_raw_store_add(store, key, SN_CPU_TIME, value);
  *booked += value;
}

static void text(sn_string_table *table, input *in) {
  size_t length = take(in);
  if (length > (size_t)(in->end - in->at)) length = (size_t)(in->end - in->at);
  uint32_t id;
  const char *bytes = (const char *)in->at;
  in->at += length;
  if (sn_string_table_intern(table, bytes, length, &id) != SN_OK) return;
  size_t kept;
  const char *copy = sn_string_table_get(table, id, &kept);
  must(sn_utf8_valid(copy, kept) && copy[kept] == '\0');
  must(sn_string_table_find(table, copy, kept) == id);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  input in = {bytes, bytes + length};
  sn_memory memory, text_memory;
  sn_raw_store store;
  sn_string_table table;
  int64_t booked = 0;
  sn_memory_init(&memory, 4096 + (size_t)take(&in) * 64);
  sn_memory_init(&text_memory, 20000);
  must(sn_raw_store_init(&store, &memory) == SN_OK);
  must(sn_string_table_init(&table, &text_memory) == SN_OK);
  while (in.at < in.end) {
    const uint8_t operation = take(&in);
    if (operation == 0) {
      sn_raw_store_reset(&store);
      booked = 0;
    } else if (operation < 64) {
      text(&table, &in);
    } else {
      book(&store, &in, &booked);
    }
  }
  check_store(&store, booked);
  sn_raw_store_destroy(&store);
  sn_string_table_destroy(&table);
  must(memory.used == 0 && text_memory.used == 0);
  return 0;
}

#include "../fuzz/standalone.h"
