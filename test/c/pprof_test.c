/* The writer against the reader, both against the worked example of the format's description, and the reader against
 * files that go tool pprof refuses. */
#include "core/pprof_reader.h"
#include "core/pprof_writer.h"
#include "profile_text.h"

static const char EXAMPLE[] =
    "0a04080110020a040803100412180a0201021205038087a70e1a04080510061a"
    "05080718d20912100a010212050180ade2041a04080510062208080122040801"
    "100c220808022204080210142a0808011008200a280a2a0608021009200a3200"
    "320b6370752d73616d706c65733205636f756e7432086370752d74696d65320b"
    "6e616e6f7365636f6e647332097468726561642069643205372028382932126c"
    "6f63616c20726f6f74207370616e2069643207466f6f2362617232063c6d6169"
    "6e3e32092f6170702f612e7262488080a8b1e39fe7cb175080b09dc2df015a04"
    "080310046080ade2047003";

static size_t from_hex(const char *hex, uint8_t *out) {
  size_t n = 0;
  unsigned byte;
  for (; hex[2 * n] != '\0' && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++) out[n] = (uint8_t)byte;
  return n;
}

static void write_to(const sn_profile *profile, sn_memory *memory, sn_sink *sink) {
  sn_memory_init(memory, 0);
  sn_sink_init(sink, memory);
  EXPECT_EQ(sn_pprof_write(profile, "ruby", sink), SN_OK);
}

static void expect_same(const sn_profile *a, const sn_profile *b) {
  char *a_text = profile_text(a), *b_text = profile_text(b);
  EXPECT_TEXT(a_text, b_text);
  free(a_text);
  free(b_text);
}

static void worked_example(void) {
  uint8_t bytes[256];
  char error[100];
  sn_profile truth, read;
  const size_t length = from_hex(EXAMPLE, bytes);
  EXPECT_EQ(length, 235);
  make_example(&truth);
  EXPECT_EQ(sn_profile_init(&read, 0), SN_OK);
  EXPECT_EQ(sn_pprof_read(&read, bytes, length, error, sizeof(error)), SN_OK);
  EXPECT_TEXT(error, "");
  expect_same(&read, &truth);
  sn_profile_destroy(&read);
  sn_profile_destroy(&truth);
}

static void round_trip(sn_profile *profile) {
  sn_memory memory;
  sn_sink sink, again;
  sn_profile read;
  char error[100];
  write_to(profile, &memory, &sink);
  EXPECT_EQ(sn_profile_init(&read, 0), SN_OK);
  EXPECT_EQ(sn_pprof_read(&read, sink.bytes, sink.length, error, sizeof(error)), SN_OK);
  EXPECT_TEXT(error, "");
  expect_same(&read, profile);
  sn_sink_init(&again, &memory);
  EXPECT_EQ(sn_pprof_write(&read, "ruby", &again), SN_OK);
  sn_sink_destroy(&again);
  sn_sink_destroy(&sink);
  sn_profile_destroy(&read);
  EXPECT_EQ(memory.used, 0);
}

static void round_trips(void) {
  sn_profile profile;
  make_example(&profile);
  round_trip(&profile);
  sn_profile_destroy(&profile);
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  round_trip(&profile);
  sn_profile_destroy(&profile);
  for (uint64_t seed = 0; seed < 30; seed++) {
    make_random(&profile, seed, (uint32_t)seed * 20);
    round_trip(&profile);
    sn_profile_destroy(&profile);
  }
}

static void deep(void) {
  sn_profile profile;
  static uint32_t frames[20000];
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "a", "count");
  for (uint32_t i = 0; i < 20000; i++) frames[i] = frame(&profile, "f", "x", 0, i % 300);
  add_sample(&profile, frames, 20000, NULL, 0, (int64_t[]){1});
  round_trip(&profile);
  sn_profile_destroy(&profile);
}

/* Pieces to build files by hand. */
#define STRINGS      \
  "\x32\x00\x32\x01" \
  "a\x32\x01"        \
  "b"
#define TYPE "\x0a\x04\x08\x01\x10\x02"
#define FUNCTION "\x2a\x04\x08\x01\x10\x01"
#define LOCATION "\x22\x06\x08\x01\x22\x02\x08\x01"
#define SAMPLE "\x12\x04\x08\x01\x10\x05"

static sn_status read_bytes(const char *bytes, size_t length, char *text, size_t size) {
  sn_profile read;
  char error[100];
  EXPECT_EQ(sn_profile_init(&read, 1 << 20), SN_OK);
  uint8_t *exact = malloc(length + (length == 0)); /* so that a read past the end is noticed */
  if (length > 0) memcpy(exact, bytes, length);
  const sn_status status = sn_pprof_read(&read, exact, length, error, sizeof(error));
  free(exact);
  EXPECT((status == SN_OK) == (error[0] == '\0'));
  if (status == SN_OK) {
    char *whole = profile_text(&read);
    snprintf(text, size, "%s", strchr(whole, '\n') + 1);
    free(whole);
  } else {
    snprintf(text, size, "%s", error);
  }
  sn_profile_destroy(&read);
  return status;
}

#define EXPECT_READ(bytes, wanted_status, wanted_text)                                \
  do {                                                                                \
    char got[200];                                                                    \
    EXPECT_EQ(read_bytes(bytes, sizeof(bytes) - 1, got, sizeof(got)), wanted_status); \
    EXPECT_TEXT(got, wanted_text);                                                    \
  } while (0)

static void any_order(void) {
  EXPECT_READ(TYPE SAMPLE LOCATION FUNCTION STRINGS, SN_OK, "a :0(0); -> 5\n");
  EXPECT_READ(STRINGS FUNCTION LOCATION SAMPLE TYPE, SN_OK, "a :0(0); -> 5\n");
  EXPECT_READ("\x12\x06\x0a\x01\x01\x12\x01\x05" TYPE LOCATION FUNCTION STRINGS, SN_OK, "a :0(0); -> 5\n"); /* packed */
  EXPECT_READ(TYPE SAMPLE SAMPLE LOCATION FUNCTION STRINGS, SN_OK, "a :0(0); -> 10\n");
  /* unknown fields of all wire types */
  EXPECT_READ(
      "\xf8\x07\x01\xf9\x07"
      "12345678\xfa\x07\x01x\xfd\x07"
      "1234" TYPE SAMPLE LOCATION FUNCTION STRINGS,
      SN_OK, "a :0(0); -> 5\n");
}

static void odd_ids(void) {
  /* location 2^63 + 1 and function 300 */
  EXPECT_READ(TYPE
              "\x12\x0d\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01\x10\x05"
              "\x22\x10\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01\x22\x03\x08\xac\x02"
              "\x2a\x05\x08\xac\x02\x10\x01" STRINGS,
              SN_OK, "a :0(0); -> 5\n");
}

static void inlined(void) {
  /* two lines in location 1: the first is the innermost; location 2 is plain; the sample has 2, 1, 2 */
  EXPECT_READ(TYPE
              "\x12\x08\x0a\x03\x02\x01\x02\x12\x01\x05"
              "\x22\x0e\x08\x01\x22\x04\x08\x01\x10\x07\x22\x04\x08\x02\x10\x08"
              "\x22\x06\x08\x02\x22\x02\x08\x02" FUNCTION "\x2a\x04\x08\x02\x10\x02" STRINGS,
              SN_OK, "b :0(0);a :7(0);b :8(0);b :0(0); -> 5\n");
}

static void addresses(void) {
  EXPECT_READ(TYPE SAMPLE "\x22\x05\x08\x01\x18\xff\x01" STRINGS, SN_OK, "0xff :0(0); -> 5\n");
}

static void labels(void) {
  /* key a: text b; key b: 0 with unit a; of a twice the last */
  EXPECT_READ(
      TYPE "\x12\x16\x08\x01\x10\x05\x1a\x04\x08\x01\x18\x09\x1a\x04\x08\x01\x10\x02\x1a\x04\x08\x02\x20\x01" LOCATION
          FUNCTION STRINGS,
      SN_OK, "a :0(0); a=b b=0a -> 5\n");
}

static void refused(void) {
  EXPECT_READ("", SN_MALFORMED, "empty input");
  EXPECT_READ("\x0a", SN_MALFORMED, "broken field at byte 1");
  EXPECT_READ(TYPE, SN_MALFORMED, "no strings");
  EXPECT_READ("\x32\x01x", SN_MALFORMED, "the first string is not empty");
  EXPECT_READ("\x0a\x02\x08\x63" STRINGS, SN_MALFORMED, "string index 99 out of range");
  EXPECT_READ(SAMPLE LOCATION FUNCTION STRINGS, SN_MALFORMED, "sample with more values than there are types");
  EXPECT_READ("\x12\x00" STRINGS, SN_MALFORMED, "samples, but no sample types");
  EXPECT_READ(TYPE TYPE SAMPLE LOCATION FUNCTION STRINGS, SN_MALFORMED, "sample with 1 values for 2 types");
  EXPECT_READ(TYPE SAMPLE FUNCTION STRINGS, SN_MALFORMED, "sample with unknown location 1");
  EXPECT_READ(TYPE SAMPLE LOCATION STRINGS, SN_MALFORMED, "line with unknown function 1");
  EXPECT_READ(TYPE LOCATION LOCATION FUNCTION STRINGS, SN_MALFORMED, "two locations with id 1");
  EXPECT_READ(TYPE FUNCTION FUNCTION STRINGS, SN_MALFORMED, "two functions with id 1");
  EXPECT_READ("\x1a\x02\x08\x01\x1a\x02\x08\x01" STRINGS, SN_MALFORMED, "two mappings with id 1");
  EXPECT_READ("\x1a\x00" STRINGS, SN_MALFORMED, "mapping with id 0");
  EXPECT_READ("\x22\x00" STRINGS, SN_MALFORMED, "location with id 0");
  EXPECT_READ("\x2a\x00" STRINGS, SN_MALFORMED, "function with id 0");
  EXPECT_READ("\x48\x01\x48\x01" STRINGS, SN_MALFORMED, "concatenated profiles");
  EXPECT_READ("\x10\x01" STRINGS, SN_MALFORMED, "wrong wire type in field 2");
  EXPECT_READ("\x38\x09" STRINGS, SN_MALFORMED, "string index 9 out of range");
  EXPECT_READ(TYPE "\x12\x03\x0a\x01\xff" STRINGS, SN_MALFORMED, "broken varint in a sample");
}

static void accepted(void) {
  EXPECT_READ(STRINGS, SN_OK, "");
  EXPECT_READ(TYPE "\x12\x02\x10\x05" STRINGS, SN_OK, " -> 5\n"); /* an empty stack */
  EXPECT_READ(TYPE SAMPLE "\x22\x08\x08\x01\x10\x09\x22\x02\x08\x01" FUNCTION STRINGS, SN_OK, "a :0(0); -> 5\n");
}

/* A location of 10,000 lines that samples mention 10,000 times each is a small file and a billion frames. */
static void amplification(void) {
  sn_memory memory;
  sn_sink sink;
  sn_profile read;
  sn_memory_init(&memory, 0);
  sn_sink_init(&sink, &memory);
  sn_sink_write(&sink, TYPE FUNCTION STRINGS, sizeof(TYPE FUNCTION STRINGS) - 1);
  sn_sink_write(&sink, "\x22\xc2\xb8\x02\x08\x01", 6); /* 10,000 lines of 4 bytes and 2 for the id: length 40,002 */
  for (int k = 0; k < 10000; k++) sn_sink_write(&sink, "\x22\x02\x08\x01", 4);
  sn_sink_write(&sink, "\x12\x95\x4e\x10\x05\x0a\x90\x4e", 8); /* 10,000 times location 1: length 10,005 */
  for (int k = 0; k < 10000; k++) sn_sink_write(&sink, "\x01", 1);
  char error[100];
  EXPECT_EQ(sn_profile_init(&read, 0), SN_OK);
  EXPECT_EQ(sn_pprof_read(&read, sink.bytes, sink.length, error, sizeof(error)), SN_TOO_LARGE);
  EXPECT_TEXT(error, "too many frames for its length");
  sn_profile_destroy(&read);
  sn_sink_destroy(&sink);
}

static void cut_anywhere(void) {
  sn_memory memory;
  sn_sink sink;
  sn_profile profile;
  make_random(&profile, 3, 20);
  write_to(&profile, &memory, &sink);
  char text[200];
  for (size_t length = 0; length < sink.length; length++) {
    (void)read_bytes((const char *)sink.bytes, length, text, sizeof(text));
  }
  sn_sink_destroy(&sink);
  sn_profile_destroy(&profile);
}

static void limited(void) {
  sn_memory memory;
  sn_sink sink;
  sn_profile profile, read;
  make_random(&profile, 3, 500);
  write_to(&profile, &memory, &sink);
  for (size_t limit = 8000; limit < 200000; limit += 8000) {
    char error[100];
    EXPECT_EQ(sn_profile_init(&read, limit), SN_OK);
    const sn_status status = sn_pprof_read(&read, sink.bytes, sink.length, error, sizeof(error));
    EXPECT(status == SN_FULL || limit > 50000);
    EXPECT(read.memory.peak <= limit);
    if (status == SN_FULL) EXPECT_TEXT(error, "a memory limit was reached");
    sn_profile_destroy(&read);
  }
  sn_sink_destroy(&sink);
  sn_profile_destroy(&profile);
}

int main(void) {
  test("the worked example reads as it should", worked_example);
  test("what is written is read back equal", round_trips);
  test("a very deep stack survives", deep);
  test("fields may come in any order, packed or not, beside unknown ones", any_order);
  test("ids may be any numbers", odd_ids);
  test("inlined lines become frames, innermost first", inlined);
  test("a location without lines is shown by its address", addresses);
  test("labels are texts or numbers, the last of a key wins", labels);
  test("what go tool pprof refuses is refused, with a reason", refused);
  test("what go tool pprof accepts is accepted", accepted);
  test("a small file cannot stand for a billion frames", amplification);
  test("a file cut off anywhere does no harm", cut_anywhere);
  test("reading stays below the memory limit", limited);
  return finish(__FILE__);
}
