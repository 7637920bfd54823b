/* collect_sample: what is booked to which stack, for CPU, wall and GVL wait. The heart of the truth of a profile.
 *
 * Instants are random moments at which the worker looks (collect_worker). The rules:
 *  - CPU goes only to a stack seen burning CPU: an instant counts when the thread's CPU clock advanced, between the
 *    instant and the moment its stack is read, by at least half of the time that passed. Its weight is the time since
 *    the instant before; the flush spreads the thread's exact CPU time over its weights (core/raw_convert.h says why
 *    that is unbiased).
 *  - Wall time is tiled: each instant books the time since the thread's last booked instant to what the thread was
 *    doing at it. For a thread that was off the GVL that happens when it comes back (its stack has not moved), or at a
 *    flush; nothing is done for it in between, however many such threads there are.
 *  - Time waited for the GVL is measured exactly, kept out of the rest of the wall time, and booked (as both) to a
 *    stack at which an instant fell into such a wait.
 *  - At a flush and at a thread's end the rest is booked, so that the totals are exact.
 *
 * Contexts: with the GVL unless said otherwise; at safepoints, in GVL events and in GC hooks. Writes the active slot.
 */
#ifndef SONDE_COLLECT_SAMPLE_H
#define SONDE_COLLECT_SAMPLE_H

#include "collect_state.h"

/* At a safepoint: serves the calling thread's instants. */
void sn_sample_job(void);

/* GVL events: see vm_events.h for the thread each runs on. */
void sn_sample_resumed(VALUE thread);
void sn_sample_suspended(VALUE thread);
void sn_sample_ready(VALUE thread);
void sn_sample_exited(VALUE thread);
/* A thread begins, where there are no GVL events. */
void sn_sample_begun(VALUE thread);

/* Books what a thread did off the GVL up to an instant; its stack is in the engine's buffer. Where there are no GVL
 * events. */
void sn_sample_book_capture(sn_raw_store *store, sn_thread *t, int64_t until, int64_t instants, int64_t weight,
                            int64_t weight_count);

/* Books the pending instants of t, which is the calling thread. in_gc: they fell into a collection. */
typedef enum sn_serve_as { SN_SERVE_PLAIN, SN_SERVE_GC, SN_SERVE_AS_SEEN } sn_serve_as;
void sn_sample_serve(sn_thread *t, sn_serve_as as);

/* In the signal's handler, on the thread t, which holds the GVL: notes its top frame. Contexts: signal. */
void sn_sample_note_top(sn_thread *t);

/* An entry for a thread that lives when the engine starts. */
void sn_sample_seed(VALUE thread, pid_t tid, bool current);

/* Where no event told of it: looks whether t has ended. Calls Ruby, so other threads may run. */
void sn_sample_notice_death(sn_thread *t, int64_t now);

/* Books everything of t up to `now`. own: the caller's own thread, whose leading frames below own_directory are left
 * out. Returns the CPU time of the thread since its last flush, -1 when unknown; *fallback, *labels: the stack for CPU
 * without a sample, and what held with it. */
int64_t sn_sample_settle(sn_thread *t, int64_t now, bool own, uint32_t *fallback, uint32_t *labels);

/* Frames of files below this directory are Sonde's own (set once at load; borrowed). */
void sn_sample_set_own_directory(const char *path, size_t length);

#endif
