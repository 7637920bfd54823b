/* collect_stack: walks, folds and interns a stack into the active slot. Contexts: gvl, gc. */
#ifndef SONDE_COLLECT_STACK_H
#define SONDE_COLLECT_STACK_H

#include "collect_state.h"

/* Each reads a stack into the engine's buffer; the others work on what was read last. */
void sn_stack_walk_current(void);
void sn_stack_walk(VALUE thread);
/* Leaves out the leading frames whose files lie below the directory, and the C functions between them. */
void sn_stack_drop_own(const char *directory, size_t length);

/* Interns what was read; with a leaf frame "(garbage collection)" on top when gc is true. */
uint32_t sn_stack_intern(sn_raw_store *store, bool gc);
/* Interns a one-frame stack of one of Sonde's own frames. */
uint32_t sn_stack_intern_special(sn_raw_store *store, enum sn_special_frame frame);

#endif
