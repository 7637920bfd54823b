/* os_signal: the one signal that Sonde sends, on Rubies where a job can only be asked for on the thread itself.
 *
 * SIGURG: its default action is to ignore it, so one that is pending across exec harms nobody. The handler stays
 * installed when a profile ends (it then does nothing), since a late signal must find it.
 */
#ifndef SONDE_OS_SIGNAL_H
#define SONDE_OS_SIGNAL_H

#include <stdbool.h>
#include <sys/types.h>

/* Installs the handler unless somebody else handles the signal. NULL, or a static reason. handler: signal context.
 * Contexts: any thread, one at a time. */
const char *sn_os_signal_install(void (*handler)(void));

/* Sends it to one thread of this process, unless somebody else handles it by now. Contexts: any. */
void sn_os_signal_send(pid_t tid);

#endif
