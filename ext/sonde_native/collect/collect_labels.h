/* collect_labels: the program's own labels. Each block that sets labels has an entry, with its own pairs and those
 * around it; a fiber-local variable of the VM says which entry holds in the fiber that runs, so that a switch of fibers
 * needs no hook, and reading it allocates nothing.
 *
 * An id is the entry's index with a serial number above it. An entry is let go when its block has ended and no row that
 * is still to be flushed has its index; so blocks that no sample fell into cost nothing afterwards. Their number and
 * their bytes are bounded: past that a block gets the one entry that says labels=(overflow), and is counted.
 *
 * Contexts: gvl (jobs and GVL events too), unless said otherwise. Everything is static, and lives through a fork.
 */
#ifndef SONDE_COLLECT_LABELS_H
#define SONDE_COLLECT_LABELS_H

#include <ruby.h>

#include "../core/profile.h"
#include "collect_thread.h"

typedef struct sn_label_pair {
  const char *key;  /* owned by the entry, as are the others; each ends with a NUL */
  const char *text; /* NULL: the number */
  int64_t number;
} sn_label_pair;

enum { SN_LABELS_MOST = 32 }; /* in one entry */

/* Makes an entry of the pairs inside what holds in the running fiber (of two with one key the inner one wins), and has
 * it hold there. The texts are copied. Answers its id. May raise: FrozenError where the thread is frozen. */
uint32_t sn_labels_enter(const sn_label_pair *pairs, uint32_t count);
/* Ends it, and those made inside that were not ended; `previous` holds again, if it held here at all. May raise as
 * above. */
void sn_labels_leave(uint32_t id, uint32_t previous);
/* Ends it, where its fiber will never come to that. Contexts: gc. */
void sn_labels_abandon(uint32_t id);
/* Changes or adds a pair of an entry that has not ended, for the samples that it has already too. */
void sn_labels_amend(uint32_t id, sn_label_pair pair);
/* What holds in the running fiber; 0: nothing. */
uint32_t sn_labels_here(void);
/* All its pairs, those around it too: answers how many were put into the array, which has room for SN_LABELS_MOST.
 * Borrowed until the GVL is given up. */
uint32_t sn_labels_pairs(uint32_t id, sn_label_pair *all);

/* For a row of the thread in the active slot: the index of what holds in its fiber, or of what sn_labels_pin said. */
uint32_t sn_labels_of(sn_thread *t);
/* What a copy of a stack notes: the id that holds in the thread's fiber. Without the GVL: what was read last. */
uint32_t sn_labels_note(sn_thread *t, bool with_gvl);
/* All rows until the next call have this id; SN_LABELS_READ: what holds. */
void sn_labels_pin(uint32_t id);
/* The id behind the last row of the thread. */
uint32_t sn_labels_last(const sn_thread *t);
#define SN_LABELS_READ UINT32_MAX

/* Labels of a flushed slot's rows for sn_raw_convert: an array (to be freed, by free) of the profile's label sets by
 * index. Contexts: nogvl, gvl. */
SN_MUST_USE sn_status sn_labels_convert(const sn_raw_store *store, sn_profile *out, uint32_t **sets, uint32_t *count);
/* The rows of all generations before this one are gone. */
void sn_labels_release(uint64_t generation);

#endif
