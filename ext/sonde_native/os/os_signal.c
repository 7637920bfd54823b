/* os_signal: see the header. signal-context file: on_signal runs in the handler, on the thread that was sent to. */
#define _GNU_SOURCE
#include "os_signal.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static void (*callback)(void);
static pid_t own_pid; /* of the process that installed it */

static void on_signal(int number, siginfo_t *info, void *context) {
  (void)number, (void)info, (void)context;
  int saved = errno;
  if (callback) callback();
  errno = saved;
}

static bool is_ours(const struct sigaction *action) {
  return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal;
}

const char *sn_os_signal_install(void (*handler)(void)) {
  struct sigaction now, wanted = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
  if (sigaction(SIGURG, NULL, &now) != 0) return "the system refuses signal handlers";
  bool ours = is_ours(&now);
  bool free_to_use = !(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
  if (!ours && !free_to_use) return "this program handles SIGURG itself, which Sonde needs on Ruby before 3.3";
  callback = handler;
  own_pid = getpid();
  sigfillset(&wanted.sa_mask);
  if (!ours && sigaction(SIGURG, &wanted, NULL) != 0) return "the system refuses signal handlers";
  return NULL;
}

void sn_os_signal_send(pid_t tid) {
  struct sigaction now;
  /* The program may have taken the signal for itself since. */
  if (sigaction(SIGURG, NULL, &now) != 0 || !is_ours(&now)) return;
  if (tid > 0) syscall(SYS_tgkill, own_pid, tid, SIGURG);
}
