/* collect_debt: see the header. Called where picks are booked and by the flushing thread, with the GVL. No lock. */
#include "collect_debt.h"

#include "../core/wide_math.h"
#include "../vm/vm_events.h"
#include "../vm/vm_gc.h"
#include "collect_stack.h"

enum { LIMIT = 4096 };

typedef struct debtor {
  uint32_t row; /* of the active slot */
  double bytes;
} debtor;

static struct {
  debtor debtors[LIMIT]; /* since the last collection that was noticed */
  uint32_t count;
  uint64_t collections; /* then */
  uint64_t clock;       /* time in collections then */
  double open;          /* time that nobody owed */
} debt;

void sn_debt_begin(void) {
  debt.count = 0;
  debt.open = 0;
  debt.collections = sn_vm_events_gc_count();
  debt.clock = sn_vm_gc_clock();
}

static void owe(sn_raw_store *store, uint32_t row, double time) {
  const double unit = 1000; /* weights: a flush scales them to the exact total */
  int64_t *value = &store->rows[row].values[SN_GC_DEBT_TIME];
  *value = sn_add_saturating(*value, (int64_t)(time * unit + 0.5));
}

static void share_out(sn_raw_store *store) {
  double all = 0;
  for (uint32_t i = 0; i < debt.count; i++) all += debt.debtors[i].bytes;
  if (all <= 0) return;
  for (uint32_t i = 0; i < debt.count; i++) {
    owe(store, debt.debtors[i].row, debt.open * debt.debtors[i].bytes / all);
  }
  debt.open = 0;
}

static void notice(sn_raw_store *store) {
  uint64_t collections = sn_vm_events_gc_count();
  if (collections == debt.collections) return;
  uint64_t clock = sn_vm_gc_clock();
  debt.open += (double)(clock - debt.clock);
  debt.clock = clock;
  debt.collections = collections;
  share_out(store);
  debt.count = 0;
}

/* Every other one goes, the others stand for it: in such numbers that hardly matters. */
static void make_room(void) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < debt.count; i += 2) {
    debt.debtors[kept] = debt.debtors[i];
    debt.debtors[kept++].bytes *= 2;
  }
  debt.count = kept;
}

void sn_debt_add(sn_raw_store *store, uint32_t row, double bytes, uint64_t collections) {
  if (collections != debt.collections) notice(store);
  if (debt.count == LIMIT) make_room();
  debt.debtors[debt.count++] = (debtor){.row = row, .bytes = bytes};
}

/* Those who owe nothing yet are forgotten: their rows go with the slot. */
void sn_debt_settle(int64_t gc_time) {
  sn_raw_store *store = sn_recorder_enter(&sn_the_engine.recorder);
  if (!store) return;
  notice(store);
  debt.count = 0;
  bool owed = false;
  for (uint32_t i = 0; i < store->row_count; i++) owed |= store->rows[i].values[SN_GC_DEBT_TIME] > 0;
  if (!owed && gc_time > 0) {
    sn_row_key key = {.stack = sn_stack_intern_special(store, SN_FRAME_NOT_SAMPLED)};
    sn_raw_store_add(store, key, SN_GC_DEBT_TIME, 1);
  }
  sn_recorder_leave(&sn_the_engine.recorder, store);
}
