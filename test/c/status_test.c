#include "core/status.h"
#include "harness.h"

static void texts(void) {
  for (int i = 0; i <= SN_INVALID; i++) {
    EXPECT(strlen(sn_status_text((sn_status)i)) > 0);
    for (int k = 0; k < i; k++) EXPECT(strcmp(sn_status_text((sn_status)i), sn_status_text((sn_status)k)) != 0);
  }
  EXPECT_TEXT(sn_status_text((sn_status)999), "unknown status");
}

typedef struct counted {
  const char *name, *meaning;
} counted;

static void counters(void) {
  static const counted all[] = {
#define SN_COUNTER(name, meaning) {#name, meaning},
#include "core/counters.def"
#undef SN_COUNTER
  };
  const size_t count = sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; i++) {
    EXPECT(strlen(all[i].meaning) > 0);
    for (size_t k = 0; k < i; k++) EXPECT(strcmp(all[i].name, all[k].name) != 0);
  }
}

int main(void) {
  test("every status has its own text", texts);
  test("every counter has its own name, and a meaning", counters);
  return finish(__FILE__);
}
