#include "core/utf8.h"
#include "harness.h"

static char *repaired(const char *bytes, size_t length) {
  static char out[256];
  const size_t size = sn_utf8_repair(bytes, length, NULL);
  EXPECT(size < sizeof(out));
  EXPECT_EQ(sn_utf8_repair(bytes, length, out), size);
  out[size] = '\0';
  EXPECT(sn_utf8_valid(out, size));
  return out;
}

#define REPAIRED(text) repaired(text, sizeof(text) - 1)
#define VALID(text) sn_utf8_valid(text, sizeof(text) - 1)
#define BAD "\xEF\xBF\xBD"

static void valid(void) {
  EXPECT(VALID(""));
  EXPECT(VALID("plain text that is longer than eight bytes"));
  EXPECT(VALID("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xED\x9F\xBF \xEE\x80\x80 \xF4\x8F\xBF\xBF"));
}

static void invalid(void) {
  EXPECT(!VALID("\x80"));
  EXPECT(!VALID("12345678\xC3"));
  EXPECT(!VALID("\xC0\x80"));         /* overlong */
  EXPECT(!VALID("\xE0\x80\x80"));     /* overlong */
  EXPECT(!VALID("\xED\xA0\x80"));     /* surrogate */
  EXPECT(!VALID("\xF4\x90\x80\x80")); /* past the last code point */
  EXPECT(!VALID("\xF8\x88\x80\x80\x80"));
}

static void repair(void) {
  EXPECT_TEXT(REPAIRED("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_TEXT(REPAIRED("caf\xE9"), "caf" BAD);
  EXPECT_TEXT(REPAIRED("\xF0\x9F\x98x"), BAD "x"); /* a cut-off sequence is one mistake */
  EXPECT_TEXT(REPAIRED("\xC0\x80"), BAD BAD);
  EXPECT_TEXT(REPAIRED("\xED\xA0\x80"), BAD BAD BAD);
}

static void anything(void) {
  uint64_t seed = 1;
  char bytes[64];
  for (int round = 0; round < 20000; round++) {
    const uint32_t length = below(&seed, 64);
    for (uint32_t i = 0; i < length; i++) bytes[i] = (char)(below(&seed, 3) ? 0x80 + below(&seed, 128) : 'a');
    const bool was_valid = sn_utf8_valid(bytes, length);
    const char *out = repaired(bytes, length);
    EXPECT(!was_valid || (strlen(out) == length && memcmp(out, bytes, length) == 0));
  }
}

int main(void) {
  test("valid text is recognised", valid);
  test("overlong forms, surrogates and cut-off sequences are not valid", invalid);
  test("a wrong sequence becomes one replacement character", repair);
  test("whatever comes in, valid text comes out, and valid text is not changed", anything);
  return finish(__FILE__);
}
