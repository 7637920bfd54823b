/* collect_debt: who causes collections. The time of a collection is owed by those who allocated since the one before
 * it, in proportion to their bytes, as far as they were picked (collect_alloc).
 *
 * Contexts: gvl. Makes no object.
 */
#ifndef SONDE_COLLECT_DEBT_H
#define SONDE_COLLECT_DEBT_H

#include "collect_state.h"

void sn_debt_begin(void);

/* Row `row` of the active slot's store stands for so many bytes more; when they were allocated there had been so many
 * collections. */
void sn_debt_add(sn_raw_store *store, uint32_t row, double bytes, uint64_t collections);

/* At a flush, before the flip: settles what is owed. gc_time: of the slot; where nobody owes it, "(not sampled)"
 * does. */
void sn_debt_settle(int64_t gc_time);

#endif
