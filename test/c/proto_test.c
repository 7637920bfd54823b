/* The writer and the reader of protocol buffers, against each other and against bytes written by hand. */
#include "core/id_map.h"
#include "core/proto_reader.h"
#include "core/proto_writer.h"
#include "harness.h"

static sn_memory memory;
static sn_sink sink;

static void begin(void) {
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
}

static void expect_bytes(const char *wanted, size_t length) {
  EXPECT_EQ(sink.length, length);
  EXPECT(sink.length == length && memcmp(sink.bytes, wanted, length) == 0);
  sn_sink_destroy(&sink);
  EXPECT_EQ(memory.used, 0);
}

#define EXPECT_BYTES(text) expect_bytes(text, sizeof(text) - 1)

static void fields(void) {
  begin();
  sn_proto_uint(&sink, 1, 150);
  sn_proto_uint(&sink, 2, 0);
  sn_proto_int(&sink, 16, -1);
  sn_proto_bytes(&sink, 2, "testing", 7);
  sn_proto_bytes(&sink, 6, "", 0);
  EXPECT_BYTES("\x08\x96\x01\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x12\x07testing\x32\x00");
}

static void packed(void) {
  begin();
  sn_proto_packed_ids(&sink, 4, (uint32_t[]){2, 269, 86941}, 3, 1);
  sn_proto_packed_ids(&sink, 4, NULL, 0, 1);
  sn_proto_packed_ints(&sink, 1, (int64_t[]){0, 127}, 2);
  EXPECT_BYTES("\x22\x06\x03\x8e\x02\x9e\xa7\x05\x0a\x02\x00\x7f");
  begin();
  sn_proto_packed_ids(&sink, 1, (uint32_t[]){UINT32_MAX}, 1, 1); /* the last id does not wrap */
  EXPECT_BYTES("\x0a\x05\x80\x80\x80\x80\x10");
}

static void nested(void) {
  for (size_t size = 0; size < 40000; size = size * 2 + 1) {
    begin();
    char *text = calloc(1, size + 1);
    const size_t outer = sn_proto_begin(&sink, 1);
    const size_t inner = sn_proto_begin(&sink, 2);
    sn_proto_bytes(&sink, 3, text, size);
    sn_proto_end(&sink, inner);
    sn_proto_end(&sink, outer);
    sn_proto_span span = {.at = sink.bytes, .end = sink.bytes + sink.length};
    sn_proto_field field = {0};
    for (uint32_t depth = 1; depth <= 3; depth++) {
      EXPECT(sn_proto_next(&span, &field));
      EXPECT(span.at == span.end && field.number == depth && field.wire_type == SN_PROTO_BYTES);
      span = field.bytes;
    }
    EXPECT_EQ(sn_proto_left(&field.bytes), size);
    free(text);
    sn_sink_destroy(&sink);
  }
}

static void varints(void) {
  uint64_t seed = 3;
  uint8_t bytes[SN_VARINT_MAX];
  for (int round = 0; round < 100000; round++) {
    const uint64_t value = next_random(&seed) >> below(&seed, 64);
    uint64_t read = 0;
    const uint8_t *end = sn_proto_put_varint(bytes, value);
    for (const uint8_t *cut = bytes; cut < end; cut++) {
      EXPECT(!sn_proto_varint(&(sn_proto_span){.at = bytes, .end = cut}, &read));
    }
    sn_proto_span span = {.at = bytes, .end = end};
    EXPECT(sn_proto_varint(&span, &read) && read == value && span.at == end);
  }
}

static void broken(void) {
  static const char *const inputs[] = {"\x08",
                                       "\x0a\x05"
                                       "abcd",
                                       "\x09"
                                       "1234567",
                                       "\x0d"
                                       "123",
                                       "\x0b",
                                       "\x0c",
                                       "\x0e",
                                       "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
  for (size_t i = 0; i < SN_ARRAY_LENGTH(inputs); i++) {
    const uint8_t *bytes = (const uint8_t *)inputs[i];
    sn_proto_field field;
    EXPECT(!sn_proto_next(&(sn_proto_span){.at = bytes, .end = bytes + strlen(inputs[i])}, &field));
  }
}

static void ids(void) {
  sn_id_map map;
  sn_memory_init(&memory, 0);
  sn_id_map_init(&map, &memory);
  EXPECT_EQ(sn_id_map_get(&map, 0), SN_NO_ID);
  EXPECT_EQ(sn_id_map_expect(&map, 100), SN_OK);
  for (uint32_t i = 0; i < 200; i++) {
    EXPECT_EQ(sn_id_map_add(&map, i, i), SN_OK);
    EXPECT_EQ(sn_id_map_add(&map, UINT64_MAX - i, i + 1000), SN_OK);
    EXPECT_EQ(sn_id_map_add(&map, i, 5), SN_INVALID);
    EXPECT_EQ(sn_id_map_add(&map, UINT64_MAX - i, 5), SN_INVALID);
  }
  for (uint32_t i = 0; i < 200; i++) {
    EXPECT_EQ(sn_id_map_get(&map, i), i);
    EXPECT_EQ(sn_id_map_get(&map, UINT64_MAX - i), i + 1000);
  }
  EXPECT_EQ(sn_id_map_get(&map, 200), SN_NO_ID);
  sn_id_map_destroy(&map);
  EXPECT_EQ(memory.used, 0);
}

int main(void) {
  test("fields are written as the format says, zeros left out", fields);
  test("lists of numbers are packed", packed);
  test("nested messages of any size have the right length", nested);
  test("every number is read as it was written, and never past the end", varints);
  test("cut-off, over-long and unknown fields are refused", broken);
  test("ids of a file are found whether they are dense or not, and only once", ids);
  return finish(__FILE__);
}
