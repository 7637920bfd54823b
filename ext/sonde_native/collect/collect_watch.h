/* collect_watch: what threads do off the GVL, on Rubies that do not tell (up to 3.2).
 *
 * At each instant the job or, when nobody holds the GVL, the worker compares where the top frame of each thread
 * stands (of a bounded number of threads, in turn). One that has moved since ran in between: its frames are copied
 * (vm_layout_copy). The copy stands for the thread until it moves again or gets the GVL; then it is handed over with
 * the last instant it covers, and the next job or flush books it. Copies are marked (conservatively) until then: the
 * frames were alive on the thread's stack when they were copied, and a collection that ends later sees either that
 * stack or the copy.
 * */
#ifndef SONDE_COLLECT_WATCH_H
#define SONDE_COLLECT_WATCH_H

#include "../vm/vm_layout.h"
#include "collect_state.h"

/* Looks at the threads that do not hold the GVL; moved is told of each that has moved. By whoever holds the GVL at a
 * job (cheap), or by the worker through the kernel when nobody does. */
void sn_watch_instant(sn_vm_access access, int64_t instant, const sn_thread *holder, void (*moved)(sn_thread *t));
/* Worker: whether each of at most SN_VM_POSITION_BATCH threads has not run since its frames were copied. */
void sn_watch_stand(sn_thread *const *threads, uint32_t count, bool *stands);
/* Worker: t has the GVL now. */
void sn_watch_running(sn_thread *t);

/* Books what was handed over, oldest first. Contexts: gvl. */
void sn_watch_drain(void);

/* Books the copy that still stands for t, up to the last instant it covers. After a drain. Contexts: gvl. */
void sn_watch_take(sn_thread *t);

/* Contexts: gc mark. */
void sn_watch_mark(void);

/* Throws everything away. Contexts: gvl, with the worker stopped. */
void sn_watch_clear(void);

/* The same without freeing anything: a forked child's copy of what the worker was changing. Plain stores only. */
void sn_watch_forget(void);

#endif
