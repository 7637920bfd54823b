/* collect_worker: when to sample. One native thread, which no signal reaches, looks at random instants of the monotonic
 * clock at who has the GVL and who burns CPU without it, notes that on the thread (sn_due) and asks for a job.
 *
 * It never touches the VM but through vm_events.h's functions for foreign threads, and never waits for anything but
 * time.
 */
#ifndef SONDE_COLLECT_WORKER_H
#define SONDE_COLLECT_WORKER_H

#include "collect_state.h"

/* Contexts: gvl. NULL, or a static reason why it cannot. */
const char *sn_worker_start(void);
/* Contexts: gvl, or the VM's end. Returns when the worker has ended. */
void sn_worker_stop(void);
/* In a forked child: there is no worker any more. */
void sn_worker_forget(void);

/* Who has the main Ractor's GVL, or NULL; and asks it for a job at its next safepoint. Contexts: the worker. */
sn_thread *sn_worker_holder(void);
void sn_worker_ask(sn_thread *t);

/* What is wanted of it has changed. Contexts: any. */
void sn_worker_wake(void);

/* A thread gave the GVL up: it may burn CPU without it. Contexts: GVL events. */
void sn_worker_watch(sn_thread *t);
/* Where there are no GVL events: a thread was found to have moved. Contexts: the worker, or gvl. */
void sn_worker_moved(sn_thread *t);
/* A thread whose stack nobody has seen yet takes the GVL, or lets it go, or was seen. A thread may live shorter than
 * the time between two instants: while such a one runs, the worker also looks in between. Contexts: gvl, GVL events. */
void sn_worker_unseen_runs(void);
void sn_worker_unseen_stops(void);

#endif
