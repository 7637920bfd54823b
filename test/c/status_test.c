#include "core/counters.h"
#include "core/status.h"
#include "harness.h"

static void texts(void) {
  for (int i = 0; i <= SN_INVALID; i++) {
    EXPECT(strlen(sn_status_text((sn_status)i)) > 0);
    for (int k = 0; k < i; k++) EXPECT(strcmp(sn_status_text((sn_status)i), sn_status_text((sn_status)k)) != 0);
  }
  EXPECT_TEXT(sn_status_text((sn_status)999), "unknown status");
}

static void counters(void) {
  static sn_counters counters;
  sn_counters_reset(&counters);
  for (int i = 0; i < SN_COUNTER_COUNT; i++) {
    EXPECT(strlen(sn_counter_name((sn_counter)i)) > 0);
    EXPECT(strlen(sn_counter_meaning((sn_counter)i)) > 0);
    sn_count_many(&counters, (sn_counter)i, (uint64_t)i);
    sn_count(&counters, (sn_counter)i);
  }
  for (int i = 0; i < SN_COUNTER_COUNT; i++) EXPECT_EQ(sn_counted(&counters, (sn_counter)i), i + 1);
  EXPECT_TEXT(sn_counter_name(SN_COUNT_instants_late), "instants_late");
}

int main(void) {
  test("every status has its own text", texts);
  test("every counter has a name and a meaning and counts for itself", counters);
  return finish(__FILE__);
}
