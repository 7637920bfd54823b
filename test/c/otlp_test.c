/* The OTLP writer: what it writes is checked against the official schema elsewhere (test/ruby/otlp_test.rb); here the
 * smallest body, and failing allocations. */
#include "core/otlp_writer.h"
#include "profile_text.h"

static const sn_otlp_attribute RESOURCE[] = {{.key = "service.name", .text = "shop"}, {.key = "n", .number = 0}};
static const sn_otlp_options OPTIONS = {.resource = RESOURCE,
                                        .resource_count = 2,
                                        .scope_name = "s",
                                        .scope_version = "1",
                                        .profile_id = "0123456789abcde"};

static void begin(sn_memory *memory, sn_sink *sink) {
  sn_memory_init(memory, 0);
  sn_sink_init(sink, memory);
}

static void smallest(void) {
  /* The dictionary: seven tables with their zero. */
  static const uint8_t TABLES[] = {0x12, 14, 0x0a, 0, 0x12, 0, 0x1a, 0, 0x22, 0, 0x2a, 0, 0x32, 0, 0x3a, 0};
  sn_memory memory;
  sn_sink sink;
  sn_profile profile;
  begin(&memory, &sink);
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  EXPECT_EQ(sn_otlp_write(&profile, &OPTIONS, &sink), SN_OK);
  EXPECT(sink.length > sizeof(TABLES));
  if (sink.length > sizeof(TABLES)) {
    EXPECT(memcmp(sink.bytes + sink.length - sizeof(TABLES), TABLES, sizeof(TABLES)) == 0);
  }
  sn_sink_destroy(&sink);
  sn_profile_destroy(&profile);
  EXPECT_EQ(memory.used, 0);
}

static void failing(void) {
  for (long k = 0;; k++) {
    sn_memory memory;
    sn_sink sink;
    sn_profile profile;
    make_random(&profile, 5, 30);
    begin(&memory, &sink);
    memory.fail_after = k;
    const sn_status status = sn_otlp_write(&profile, &OPTIONS, &sink);
    EXPECT(status == SN_OK || status == SN_NO_MEMORY);
    sn_sink_destroy(&sink);
    EXPECT_EQ(memory.used, 0);
    sn_profile_destroy(&profile);
    if (status == SN_OK) break;
  }
}

static void limited(void) {
  sn_profile profile;
  make_random(&profile, 5, 300);
  for (size_t limit = 1000; limit < 100000; limit += 3000) {
    sn_memory memory;
    sn_sink sink;
    sn_memory_init(&memory, limit);
    sn_sink_init(&sink, &memory);
    const sn_status status = sn_otlp_write(&profile, &OPTIONS, &sink);
    EXPECT(status == SN_OK || status == SN_FULL);
    sn_sink_destroy(&sink);
    EXPECT_EQ(memory.used, 0);
  }
  sn_profile_destroy(&profile);
}

static void nameless(void) {
  sn_memory memory;
  sn_sink sink;
  sn_profile profile;
  begin(&memory, &sink);
  EXPECT_EQ(sn_profile_init(&profile, 0), SN_OK);
  add_type(&profile, "", "count");
  const uint32_t leaf = frame(&profile, "", "", 0, 0);
  add_sample(&profile, &leaf, 1, NULL, 0, (int64_t[]){1});
  EXPECT_EQ(sn_otlp_write(&profile, &OPTIONS, &sink), SN_INVALID);
  sn_sink_destroy(&sink);
  EXPECT_EQ(memory.used, 0);
  sn_profile_destroy(&profile);
}

int main(void) {
  test("an empty profile has seven tables", smallest);
  test("a failed allocation leaks nothing", failing);
  test("a limit of memory is kept", limited);
  test("a sample type without a name is refused", nameless);
  return finish(__FILE__);
}
