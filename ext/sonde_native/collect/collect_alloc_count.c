/* collect_alloc_count: windows by count, for compiled code: the program is cut at collections and at jobs, a coin
 * decides which pieces are looked at. Runs at safepoints and inside the VM's collector, with the GVL; no lock. */
#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_newobj.h"
#include "collect_alloc_state.h"

static const double COIN_BUDGET = 0.004; /* of the time that the hook may take */
static const double WINDOWS_A_SECOND = 100;
static const double MOST_COIN = 0.5;

/* The coin depends on the past only: on how often the program was cut, and on what it allocates. */
static void weigh_coin(void) {
  const double keep = 0.9;
  int64_t now = sn_clock_monotonic();
  uint64_t count = sn_vm_newobj_count();
  double seconds = (double)(now - sn_alloc.looked_at) / 1e9;
  if (seconds <= 0) return;
  double fresh = sn_alloc.weighed ? 1 - keep : 1;
  sn_alloc.objects_a_second += fresh * ((double)(count - sn_alloc.looked_count) / seconds - sn_alloc.objects_a_second);
  sn_alloc.cuts_a_second += fresh * ((double)sn_alloc.cuts / seconds - sn_alloc.cuts_a_second);
  sn_alloc.weighed = true;
  sn_alloc.looked_at = now;
  sn_alloc.looked_count = count;
  sn_alloc.cuts = 0;
  double coin = MOST_COIN;
  double by_cost = COIN_BUDGET * 1e9 / (sn_alloc.hook_ns * sn_alloc.objects_a_second + 1);
  double by_number = WINDOWS_A_SECOND / (sn_alloc.cuts_a_second + 1);
  if (by_cost < coin) coin = by_cost;
  if (by_number < coin) coin = by_number;
  sn_alloc.next_coin = coin > SN_ALLOC_LEAST_COIN ? coin : SN_ALLOC_LEAST_COIN;
}

static bool draw(void) {
  sn_alloc.cuts++;
  return sn_alloc_uniform(&sn_alloc.random) <= sn_alloc.next_coin;
}

static void expire(void) {
  if (!sn_alloc_move(SN_WINDOW_ASKED, SN_WINDOW_IDLE)) return;
  sn_alloc_error_window(&sn_alloc.error, 0, 0, 0);
  sn_alloc.counts.windows++;
  sn_alloc.counts.empty++;
}

static void ask_with(double coin) {
  sn_alloc.coin = coin;
  atomic_store_explicit(&sn_alloc.state, SN_WINDOW_ASKED, memory_order_release);
}

/* Inside a collection: nothing can be switched here, the job at the next safepoint does that. */
void sn_alloc_gc_enter(void) {
  if (!sn_alloc.on || !sn_alloc.by_count) return;
  uint32_t before = sn_alloc_window();
  if (before == SN_WINDOW_OPEN) {
    atomic_store_explicit(&sn_alloc.inside, rb_thread_current(), memory_order_relaxed);
    atomic_store_explicit(&sn_alloc.state, SN_WINDOW_CLOSING, memory_order_release);
  }
  expire();
  bool drawn = draw();
  sn_alloc.again = drawn && sn_alloc_window() == SN_WINDOW_CLOSING;
  sn_alloc.again_coin = sn_alloc.next_coin;
  if (drawn && !sn_alloc.again) ask_with(sn_alloc.next_coin);
  if (before == SN_WINDOW_OPEN || drawn) sn_vm_events_trigger_job();
}

static void cut_by_job(void) {
  sn_alloc.again = false;
  if (sn_alloc_window() == SN_WINDOW_OPEN) sn_alloc_close(NULL);
  expire();
  weigh_coin();
  if (draw()) ask_with(sn_alloc.next_coin);
}

void sn_alloc_count_job(void) {
  if (sn_alloc.again) ask_with(sn_alloc.again_coin);
  sn_alloc.again = false;
  if (atomic_exchange_explicit(&sn_alloc.tick, false, memory_order_acq_rel)) cut_by_job();
}
