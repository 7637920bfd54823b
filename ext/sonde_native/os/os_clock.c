/* os_clock: see the header. Called on every thread, in every context; needs no lock. */
#include "os_clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id) {
  struct timespec ts;
  if (clock_gettime(id, &ts) != 0) return 0;
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t sn_clock_monotonic(void) {
  return read_clock(CLOCK_MONOTONIC);
}

int64_t sn_clock_realtime(void) {
  return read_clock(CLOCK_REALTIME);
}

int64_t sn_clock_thread_cpu(void) {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t sn_clock_process_cpu(void) {
  return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

bool sn_clock_cpu_of(pid_t tid, int64_t *ns) {
  /* Bits 0 and 1: the scheduler's clock; bit 2: of one thread; above: the complement of its id. */
  clockid_t id = (clockid_t)((~(unsigned int)tid << 3) | 6u);
  struct timespec ts;
  if (tid <= 0 || clock_gettime(id, &ts) != 0) return false;
  *ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
  return true;
}
