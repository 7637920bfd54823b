/* Two samplers that never wait (as if the GVL changed hands between them, but harder: both at once) and one serialiser.
 * What was booked and what was flushed must be the same, sample by sample. Run under TSan and under ASan. */
#include <pthread.h>
#include <sched.h>

#include "harness.h"
#include "record/recorder.h"

enum { SAMPLERS = 2, SAMPLES = 100000 };

static sn_recorder recorder;
static _Atomic int running;
static int64_t booked[SAMPLERS], flushed[SAMPLERS], booked_samples[SAMPLERS], flushed_samples[SAMPLERS];
static _Atomic uint64_t gave_up;

static void *sampler(void *argument) {
  const uint32_t self = *(const uint32_t *)argument;
  uint64_t seed = self, frames[30];
  int32_t lines[30] = {0};
  for (int i = 0; i < SAMPLES; i++) {
    sn_raw_store *store = sn_recorder_enter(&recorder);
    if (store == NULL) {
      atomic_fetch_add(&gave_up, 1);
      sched_yield(); /* as one sample in ten milliseconds would */
      continue;
    }
    for (uint32_t f = 0; f < 30; f++) frames[f] = 5000 + below(&seed, 3);
    const uint32_t stack = sn_raw_store_stack(store, frames, NULL, lines, 1 + below(&seed, 8));
    sn_row *row = sn_raw_store_row(store, (sn_row_key){.stack = stack, .thread = self + 1});
    row->values[SN_CPU_TIME] += i;
    row->values[SN_CPU_SAMPLES]++;
    sn_recorder_leave(&recorder, store);
    booked[self] += i;
    booked_samples[self]++;
  }
  atomic_fetch_sub(&running, 1);
  return NULL;
}

static void flush(void) {
  sn_raw_store *store = sn_recorder_flip(&recorder);
  for (uint32_t i = 0; i < store->row_count; i++) {
    const sn_row *row = &store->rows[i];
    if (row->key.thread == 0) continue;
    flushed[row->key.thread - 1] += row->values[SN_CPU_TIME];
    flushed_samples[row->key.thread - 1] += row->values[SN_CPU_SAMPLES];
  }
  sn_recorder_release(&recorder, store);
}

static void nothing_lost(void) {
  pthread_t threads[SAMPLERS];
  uint32_t selves[SAMPLERS];
  EXPECT_EQ(sn_recorder_init(&recorder, 0), SN_OK);
  atomic_store(&running, SAMPLERS);
  for (uint32_t i = 0; i < SAMPLERS; i++) {
    selves[i] = i;
    EXPECT_EQ(pthread_create(&threads[i], NULL, sampler, &selves[i]), 0);
  }
  while (atomic_load(&running) > 0) flush();
  for (uint32_t i = 0; i < SAMPLERS; i++) pthread_join(threads[i], NULL);
  flush();
  flush();
  for (uint32_t i = 0; i < SAMPLERS; i++) {
    EXPECT_EQ(flushed[i], booked[i]);
    EXPECT_EQ(flushed_samples[i], booked_samples[i]);
    EXPECT(booked_samples[i] > 0);
  }
  EXPECT_EQ(atomic_load(&recorder.lock_failures), atomic_load(&gave_up));
  EXPECT(atomic_load(&recorder.flips) > 10);
  sn_recorder_destroy(&recorder);
}

int main(void) {
  test("whatever samplers booked is flushed exactly once", nothing_lost);
  return finish(__FILE__);
}
