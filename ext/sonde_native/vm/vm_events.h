/* vm_events: how the VM calls us: jobs at safepoints, GVL events, GC hooks. Says when; what to do is the collectors'.
 *
 * GVL hooks are installed once and stay for the life of the process (adding or removing them in a forked child can
 * deadlock, and the VM clears nothing at exit): the callbacks gate themselves by a flag of their own. The others come
 * and go with sn_vm_events_enable and sn_vm_events_disable.
 */
#ifndef SONDE_VM_EVENTS_H
#define SONDE_VM_EVENTS_H

#include <ruby.h>

#include "../core/base.h"

typedef struct sn_vm_callbacks {
  /* At a safepoint, with the GVL of some Ractor (check sn_vm_thread_in_main_ractor). An exception must not get out. */
  void (*job)(void);
  /* The same, where other threads wait for the GVL, about every 10 ms (where SN_VM_HAS_GVL_EVENTS). Inside a hook of
   * the VM's: no Ruby object may be made, no hook added or removed. */
  void (*paused)(void);
  /* GVL events (where SN_VM_HAS_GVL_EVENTS). No Ruby allocation, no exception, no release of the GVL.
   * resumed and suspended: on the thread itself, GVL held. ready: maybe on another thread: plain stores only.
   * exited: on the thread itself, GVL already handed on. Without GVL events it comes while the thread still has the
   * GVL, and up to 3.1 only when the thread ends by itself. */
  void (*resumed)(VALUE thread);
  void (*suspended)(VALUE thread);
  void (*ready)(VALUE thread);
  void (*exited)(VALUE thread);
  /* A new thread of the main Ractor begins (where there are no GVL events). GVL held, ordinary context. */
  void (*begun)(VALUE thread);
  /* The mutator stops for the collector, and goes on (while sn_vm_events_gc is on). No Ruby allocation, no
   * exception. */
  void (*gc_enter)(void);
  void (*gc_exit)(void);
} sn_vm_callbacks;

/* Once, at load, with the GVL. NULL, or a static reason. */
const char *sn_vm_events_init(const sn_vm_callbacks *callbacks);

/* Whether GVL events come with their thread. */
bool sn_vm_events_has_gvl_events(void);
/* Whether pauses can be told by hooks at no cost to allocation. */
bool sn_vm_events_has_gc_hooks(void);

/* GC hooks, thread births and pauses, while a profile runs. With the GVL. May raise. */
void sn_vm_events_enable(void);
void sn_vm_events_disable(void);

/* From now on: called with the GVL whenever a thread has gone on in another fiber, which is the current one then. No
 * Ruby allocation, no exception. Once; with the GVL. May raise. */
void sn_vm_events_watch_fibers(void (*switched)(void));

/* Makes the main Ractor's running thread call job at its next safepoint. Contexts: any thread. Does nothing where jobs
 * cannot be triggered from outside (before 3.3.1): there the thread must be sent a signal. */
void sn_vm_events_trigger_job(void);
bool sn_vm_events_needs_signal(void);
/* In that signal's handler, on the thread with this struct: registers the job if that is safe just now. Contexts:
 * signal. */
void sn_vm_events_job_from_handler(uintptr_t thread_struct);

/* Whether the collector is at work at this moment. Contexts: any thread; a plain read. */
bool sn_vm_events_during_gc(void);

/* Collections so far (without the steps of incremental ones). Contexts: any thread; a plain read. */
uint64_t sn_vm_events_gc_count(void);

/* GC.total_time in nanoseconds, or -1 where the VM keeps none. With the GVL; may raise. */
int64_t sn_vm_events_gc_total_time(void);

#ifdef SONDE_TESTING
/* Jobs that find a C function on top wait until so many C functions have returned: at 1 they come where compiled code
 * has its first safepoint after a C function, with the caller on top. 0: no waiting. For one thread at a time. With the
 * GVL. */
void sn_vm_events_testing_delay_jobs(uint32_t returns);
#endif

#endif
