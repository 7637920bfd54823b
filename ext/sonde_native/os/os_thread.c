/* os_thread: see the header. start and join are called by the thread that starts and stops the engine; the waiter by
 * the helper (sleep) and by threads in GVL events (wake). No lock anywhere. */
#define _GNU_SOURCE
#include "os_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void *run_body(void *data) {
  const sn_os_thread *thread = data;
  prctl(PR_SET_NAME, thread->name, 0, 0, 0);
  thread->body(thread->argument);
  return NULL;
}

int sn_os_thread_start(sn_os_thread *thread, const char *name, void (*body)(void *), void *argument) {
  sigset_t all, old;
  sigfillset(&all);
  int error = pthread_sigmask(SIG_SETMASK, &all, &old);
  if (error != 0) return error;
  thread->body = body;
  thread->argument = argument;
  thread->name = name;
  error = pthread_create(&thread->handle, NULL, run_body, thread);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  thread->started = error == 0;
  return error;
}

void sn_os_thread_join(sn_os_thread *thread) {
  if (!thread->started) return;
  pthread_join(thread->handle, NULL);
  thread->started = false;
}

void sn_os_thread_forget(sn_os_thread *thread) {
  thread->started = false;
}

pid_t sn_os_thread_id(void) {
  return (pid_t)syscall(SYS_gettid);
}

bool sn_os_thread_waited(pid_t tid, int64_t *ns) {
  char text[128]; /* the time on a CPU, the time of waiting, how often it came to one */
  int saved = errno;
  snprintf(text, sizeof text, "/proc/self/task/%ld/schedstat", (long)tid);
  int file = open(text, O_RDONLY | O_CLOEXEC);
  ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  errno = saved;
  if (length <= 0) return false;
  text[length] = '\0';
  char *end;
  strtoll(text, &end, 10);
  if (*end != ' ') return false;
  *ns = strtoll(end, NULL, 10);
  return true;
}

/* The kernel's struct sched_attr in its first form; older C libraries do not declare it. */
struct scheduling {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime; /* for the normal policy, since Linux 6.12: the wished slice */
  uint64_t deadline;
  uint64_t period;
};

static bool take_real_time_priority(void) {
  struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
  return pthread_setschedparam(pthread_self(), SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0 ||
         pthread_setschedparam(pthread_self(), SCHED_RR, &lowest) == 0;
}

static void ask_for_short_slice(int nice_value) {
#ifdef SYS_sched_setattr
  struct scheduling attributes = {.size = sizeof attributes, .nice = nice_value, .runtime = 100000};
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
#else
  (void)nice_value;
#endif
}

void sn_os_thread_be_prompt(void) {
  prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
  if (take_real_time_priority()) return;
  bool raised = setpriority(PRIO_PROCESS, (id_t)sn_os_thread_id(), -10) == 0;
  ask_for_short_slice(raised ? -10 : getpriority(PRIO_PROCESS, 0));
}

uint32_t sn_os_waiter_seen(const sn_os_waiter *waiter) {
  return atomic_load_explicit(&waiter->word, memory_order_acquire);
}

void sn_os_waiter_sleep(sn_os_waiter *waiter, uint32_t seen, int64_t until) {
  struct timespec ts = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
  /* The bit set form takes an absolute monotonic time. EINTR cannot happen (all signals blocked); EAGAIN means
   * woken. */
  syscall(SYS_futex, &waiter->word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, &ts, NULL, FUTEX_BITSET_MATCH_ANY);
}

void sn_os_waiter_wake(sn_os_waiter *waiter) {
  int saved = errno;
  atomic_fetch_add_explicit(&waiter->word, 1, memory_order_release);
  syscall(SYS_futex, &waiter->word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
  errno = saved;
}
