/* os_clock: the clocks that Sonde reads, in nanoseconds. Contexts: any, signal included. No state. */
#ifndef SONDE_OS_CLOCK_H
#define SONDE_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* CLOCK_MONOTONIC; about 40 ns a call. */
int64_t sn_clock_monotonic(void);
/* UTC since 1970; for the times written into a profile. */
int64_t sn_clock_realtime(void);
/* CPU time of the calling thread; a system call of about 1 us. */
int64_t sn_clock_thread_cpu(void);
/* CPU time of the whole process. */
int64_t sn_clock_process_cpu(void);

/* CPU time of the thread with this kernel id, by the kernel's own encoding of thread clocks (no pthread_t, whose use
 * after the thread's death is undefined). False when there is no such thread in this process; then *ns is untouched. A
 * thread id can be used again by a later thread: compare with what is known of the thread. */
bool sn_clock_cpu_of(pid_t tid, int64_t *ns);

#endif
