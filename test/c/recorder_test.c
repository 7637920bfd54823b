#include "record/recorder.h"
#include "harness.h"

static sn_recorder recorder;

static void add(sn_raw_store *store, int64_t value) {
  EXPECT(store != NULL);
  if (store != NULL) sn_raw_store_add(store, (sn_row_key){0}, SN_CPU_TIME, value);
}

static void sample(int64_t value) {
  sn_raw_store *store = sn_recorder_enter(&recorder);
  add(store, value);
  if (store != NULL) sn_recorder_leave(&recorder, store);
}

static int64_t flush(void) {
  sn_raw_store *store = sn_recorder_flip(&recorder);
  const int64_t value = store->rows[0].values[SN_CPU_TIME];
  sn_recorder_release(&recorder, store);
  return value;
}

static void flips(void) {
  EXPECT_EQ(sn_recorder_init(&recorder, 0), SN_OK);
  EXPECT_EQ(sn_recorder_active(&recorder), 0);
  sample(1);
  sample(2);
  EXPECT_EQ(flush(), 3);
  EXPECT_EQ(sn_recorder_active(&recorder), 1);
  sample(4);
  EXPECT_EQ(flush(), 4);
  EXPECT_EQ(flush(), 0);
  EXPECT_EQ(recorder.flips, 3);
  sn_recorder_destroy(&recorder);
  EXPECT_EQ(recorder.slots[0].memory.used + recorder.slots[1].memory.used, 0);
}

static void during_flush(void) {
  EXPECT_EQ(sn_recorder_init(&recorder, 0), SN_OK);
  sample(1);
  sn_raw_store *flushed = sn_recorder_flip(&recorder);
  sample(10);
  EXPECT_EQ(flushed->rows[0].values[SN_CPU_TIME], 1);
  sn_recorder_release(&recorder, flushed);
  EXPECT_EQ(flush(), 10);
  sn_recorder_destroy(&recorder);
}

static void busy(void) {
  EXPECT_EQ(sn_recorder_init(&recorder, 0), SN_OK);
  sn_raw_store *inside = sn_recorder_enter(&recorder);
  EXPECT(inside != NULL);
  EXPECT(sn_recorder_enter(&recorder) == NULL); /* a second sampler gives up at once */
  EXPECT_EQ(recorder.lock_failures, 1);
  sn_recorder_leave(&recorder, inside);
  sample(1);
  sn_recorder_destroy(&recorder);
}

static void forked(void) {
  EXPECT_EQ(sn_recorder_init(&recorder, 0), SN_OK);
  sample(1);
  EXPECT(sn_recorder_flip(&recorder) != NULL); /* the serialiser is gone with its process */
  add(sn_recorder_enter(&recorder), 5);        /* and so is this sampler */
  sn_recorder_reset(&recorder);
  sample(2);
  EXPECT_EQ(flush(), 2);
  sample(3);
  EXPECT_EQ(flush(), 3);
  sn_recorder_destroy(&recorder);
}

static void no_memory(void) {
  for (long k = 0;; k++) {
    sn_memory_testing_fail_after = k;
    const sn_status status = sn_recorder_init(&recorder, 0);
    sn_memory_testing_fail_after = -1;
    if (status == SN_OK) break;
    EXPECT_EQ(recorder.slots[0].memory.used, 0);
  }
  sn_recorder_destroy(&recorder);
}

int main(void) {
  test("each sample is in exactly one flush", flips);
  test("samples go on while a slot is read", during_flush);
  test("a sampler that finds the slot taken gives up and is counted", busy);
  test("a forked child can reset whatever was held", forked);
  test("init without memory leaves nothing behind", no_memory);
  return finish(__FILE__);
}
