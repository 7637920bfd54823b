/* os_thread: one helper thread that no signal ever reaches, and the wait that it sleeps in. Linux.
 *
 * Contexts: start and join: any thread of the process, without a lock that the helper needs. wake: any, signal
 * included. waited: any, but no signal handler.
 */
#ifndef SONDE_OS_THREAD_H
#define SONDE_OS_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct sn_os_thread {
  pthread_t handle;
  /* what it was started with; read by the thread when it begins */
  void (*body)(void *);
  void *argument;
  const char *name;
  bool started;
} sn_os_thread;

/* Starts body(argument) with all signals blocked, under this name (at most 15 bytes; kept). 0, or an errno. *thread
 * must stay where it is until the join. */
int sn_os_thread_start(sn_os_thread *thread, const char *name, void (*body)(void *), void *argument);
/* Waits for its end. Nothing when it was never started, or was forgotten. */
void sn_os_thread_join(sn_os_thread *thread);
/* In a forked child: the thread is not there any more. */
void sn_os_thread_forget(sn_os_thread *thread);

/* The kernel's id of the calling thread. */
pid_t sn_os_thread_id(void);

/* How long the thread of this process with this id has been ready to run and was waiting for a CPU, in all waits that
 * are over, in nanoseconds. From /proc: some 7 us; false where that cannot be read, *ns is then untouched. Leaves errno
 * alone. */
bool sn_os_thread_waited(pid_t tid, int64_t *ns);

/* Asks for the least delay between a wake-up and running that this process may have: no timer slack; the lowest
 * real-time priority where that is permitted (few processes may), else a better nice value where that is, and a short
 * scheduler slice (Linux 6.12 and later, for everybody). For the calling thread, which must sleep nearly all the
 * time; failures are fine. */
void sn_os_thread_be_prompt(void);

/* A place to sleep until an absolute time or until woken. One sleeper. */
typedef struct sn_os_waiter {
  _Atomic uint32_t word;
} sn_os_waiter;

/* Sleeps until the monotonic time, or until a wake since `seen` was read by sn_os_waiter_seen. */
void sn_os_waiter_sleep(sn_os_waiter *waiter, uint32_t seen, int64_t until);
uint32_t sn_os_waiter_seen(const sn_os_waiter *waiter);
void sn_os_waiter_wake(sn_os_waiter *waiter);

#endif
