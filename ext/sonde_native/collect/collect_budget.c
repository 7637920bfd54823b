/* collect_budget: see the header. Everything here belongs to the worker; counters are atomic. */
#include "collect_budget.h"

#include "../os/os_clock.h"

enum {
  EVERY = 16, /* instants between two looks at the cost, */
  FEWEST = 4, /* or these when a second has passed */
  FREE = 256, /* instants at the begin: the program may be short, and then wants them all */
  MAX_STRETCH = 20
};

static struct {
  int64_t started, looked_at;
  uint64_t instants; /* at the last look: their number, */
  uint64_t cost;     /* and what all had cost */
  double each;       /* nanoseconds for one instant, lately; 0: not known yet */
} me;

/* What instants may use of one CPU. Flushing, encoding and delivering go first, as their cost over the long run: they
 * come in lumps. Allocation windows, which the worker also opens, have as much again (collect_alloc_time.c). */
static double share_for_instants(int64_t now) {
  const double minute = 60e9;
  const double aim = 0.85; /* what instants cost goes up and down, and is known afterwards only */
  sn_engine *e = &sn_the_engine;
  double budget = atomic_load_explicit(&e->budget, memory_order_relaxed);
  if (atomic_load_explicit(&e->watches_allocations, memory_order_relaxed)) budget *= 2;
  double time = (double)(now - me.started) > minute ? (double)(now - me.started) : minute;
  double left = budget - (double)atomic_load_explicit(&e->counters.delivery_cpu_ns, memory_order_relaxed) / time;
  return aim * (left > budget / 4 ? left : budget / 4);
}

/* The interval is the one at which Sonde uses no more CPU than it may, but never shorter than asked for. Weights are
 * times between instants, so they stay right whatever it is. */
static void look(int64_t now) {
  sn_engine *e = &sn_the_engine;
  uint64_t own = (uint64_t)sn_clock_thread_cpu();
  atomic_store_explicit(&e->counters.worker_cpu_ns, own, memory_order_relaxed);
  uint64_t cost = own + atomic_load_explicit(&e->counters.job_ns, memory_order_relaxed);
  uint64_t instants = atomic_load_explicit(&e->counters.instants, memory_order_relaxed);
  double each = (double)(cost - me.cost) / (double)(instants - me.instants);
  me.each = me.each > 0 ? me.each + (each - me.each) / 2 : each;
  me.cost = cost;
  me.instants = instants;
  me.looked_at = now;
  double wanted = me.each / share_for_instants(now), longest = (double)e->base_interval_ns * MAX_STRETCH;
  int64_t interval = (int64_t)(wanted < longest ? wanted : longest);
  if (interval < e->base_interval_ns) interval = e->base_interval_ns;
  atomic_store_explicit(&e->interval_ns, interval, memory_order_relaxed);
}

static bool must_look(int64_t now) {
  const int64_t second = 1000000000;
  uint64_t since = atomic_load_explicit(&sn_the_engine.counters.instants, memory_order_relaxed) - me.instants;
  if (me.each <= 0) return since >= FREE;
  return since >= EVERY || (since >= FEWEST && now - me.looked_at >= second);
}

void sn_budget_begin(int64_t now) {
  me.started = me.looked_at = now;
  me.instants = me.cost = 0;
  me.each = 0;
}

void sn_budget_keep(int64_t now) {
  if (must_look(now)) look(now);
}
