#include "core/sink.h"
#include "harness.h"

static void grows(void) {
  sn_memory memory;
  sn_sink sink;
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
  for (uint32_t i = 0; i < 10000; i++) sn_sink_write(&sink, &i, sizeof(i));
  sn_sink_write(&sink, NULL, 0);
  EXPECT_EQ(sink.length, 40000);
  for (uint32_t i = 0; i < 10000; i++) EXPECT(memcmp(sink.bytes + i * sizeof(i), &i, sizeof(i)) == 0);
  sn_sink_destroy(&sink);
  EXPECT_EQ(memory.used, 0);
}

static void stays_failed(void) {
  sn_memory memory;
  sn_sink sink;
  char bytes[64] = {0};
  sn_memory_init(&memory, 100);
  sn_sink_init(&sink, &memory);
  sn_sink_write(&sink, bytes, 64);
  sn_sink_write(&sink, bytes, 64);
  EXPECT_EQ(sink.status, SN_FULL);
  sn_sink_write(&sink, bytes, 1);
  EXPECT_EQ(sink.length, 64);
  EXPECT(sn_sink_reserve(&sink, 0) == NULL);
  sn_sink_destroy(&sink);
  sn_sink_init(&sink, &memory);
  EXPECT(sn_sink_reserve(&sink, SIZE_MAX) == NULL);
  sn_sink_destroy(&sink);
}

int main(void) {
  test("bytes written are kept in order", grows);
  test("after a failure the sink stays failed and unchanged", stays_failed);
  return finish(__FILE__);
}
