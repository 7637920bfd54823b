/* collect_engine: the engine's life: load, start, stop, fork, exit; opening and closing windows.
 *
 * Contexts: gvl, ordinary Ruby context, unless said otherwise.
 */
#ifndef SONDE_COLLECT_ENGINE_H
#define SONDE_COLLECT_ENGINE_H

#include "collect_flush.h"

typedef struct sn_engine_options {
  uint32_t columns;
  double rate; /* instants a second */
  uint32_t max_frames;
  size_t memory_limit; /* bytes for each slot; 0: none */
  double budget;       /* share of one CPU that Sonde may use */
} sn_engine_options;

/* Once, at load. NULL, or a static reason why this process cannot be profiled. own_directory: absolute path of Sonde's
 * Ruby files, kept. */
const char *sn_engine_init(const char *own_directory, size_t own_directory_length);

/* Opens a window, which must be zeroed; starts the engine for the first one. NULL, or a static reason; then the window
 * is not open. May raise (no memory, interrupts); then neither. */
const char *sn_engine_open(sn_window *window, const sn_engine_options *options);

/* Flushes. The window's profile so far is in window->profile. False: not open, or this thread is inside a flush. */
bool sn_engine_flush(sn_window *window);

/* A new, empty profile for a window whose profile was taken. SN_OK or SN_NO_MEMORY. */
SN_MUST_USE sn_status sn_engine_begin_profile(sn_window *window);

/* Flushes and closes; stops the engine after the last one. False as above. Also right after an exception: the window is
 * closed in any case. */
bool sn_engine_close(sn_window *window);

/* For an object that is collected: takes the window over, closes it without a flush if it is open, and frees it, or
 * leaves that to the flush that may be reading it. Contexts: gc. */
void sn_engine_abandon(sn_window *window);

bool sn_engine_running(void);

/* Whether the program's own code has not yet run in this forked child. The first window that is opened meanwhile counts
 * from the fork. */
void sn_engine_child_begins(bool begins);

#endif
