/* collect_status: see the header. Reads counters, which are atomic, and lists that belong to the GVL. */
#include "collect_status.h"

#include <stdio.h>

#include "../os/os_clock.h"
#include "../vm/vm_events.h"
#include "../vm/vm_selftest.h"
#include "collect_alloc.h"
#include "collect_flush.h"
#include "collect_heap.h"

bool sn_engine_feature(uint32_t number, sn_feature *feature) {
  if (sn_vm_selftest_result(number, &feature->name, &feature->reason)) return true;
  const sn_feature own[] = {
      {"allocations (mode alloc)", sn_alloc_refusal()},
      {"living objects (mode heap)", sn_alloc_refusal() ? sn_alloc_refusal() : sn_heap_refusal()}};
  uint32_t first = 0;
  while (sn_vm_selftest_result(first, &feature->name, &feature->reason)) first++;
  if (number - first >= SN_ARRAY_LENGTH(own)) return false;
  *feature = own[number - first];
  return true;
}

bool sn_engine_measures_gvl_wait(void) {
  return sn_vm_events_has_gvl_events();
}

uint32_t sn_engine_window_count(void) {
  uint32_t count = 0;
  for (const sn_window *w = sn_windows; w; w = w->next) count++;
  return count;
}

uint64_t sn_engine_own_cpu_ns(void) {
  sn_engine *e = &sn_the_engine;
  return atomic_load(&e->counters.worker_cpu_ns) + atomic_load(&e->counters.job_ns) +
         atomic_load(&e->counters.delivery_cpu_ns);
}

size_t sn_engine_memory(void) {
  size_t bytes = sn_threads_memory() + sizeof(sn_vm_stack) + sn_heap_memory();
  for (int i = 0; i < 2; i++) bytes += atomic_load(&sn_the_engine.recorder.slots[i].memory.used);
  return bytes;
}

typedef struct loss {
  uint64_t count;
  const char *what;
} loss;

static size_t add_loss(char *text, size_t size, size_t used, loss l) {
  if (l.count == 0 || used >= size) return used;
  int n = snprintf(text + used, size - used, "%s%llu %s", used > 0 ? "; " : "", (unsigned long long)l.count, l.what);
  return n > 0 ? used + (size_t)n : used;
}

static size_t describe_lateness(char *text, size_t size) {
  sn_engine *e = &sn_the_engine;
  uint64_t instants = atomic_load(&e->counters.instants);
  uint64_t late = atomic_load(&e->counters.late);
  if (instants == 0 || late * 20 < instants) return 0;
  int n =
      snprintf(text, size,
               "busy machine: %llu of %llu sampling instants were observed more than 1 ms late (by %.1f ms on average)",
               (unsigned long long)late, (unsigned long long)instants,
               (double)atomic_load(&e->counters.lateness_ns) / 1e6 / (double)instants);
  return n > 0 ? (size_t)n : 0;
}

void sn_engine_describe_losses(char *text, size_t size) {
  sn_engine_counters *c = &sn_the_engine.counters;
  const loss losses[] = {{atomic_load(&c->beside_ractors), "instants not sampled, as other Ractors lived"},
                         {atomic_load(&c->overflowed_stacks), "stacks past the memory limit"},
                         {atomic_load(&c->overflowed_rows), "samples past the memory limit"},
                         {atomic_load(&c->captures_lost), "stacks of waiting threads not copied"},
                         {atomic_load(&sn_the_engine.recorder.lock_failures), "samples without a free slot"},
                         {sn_threads.refused, "threads not followed"}};
  text[0] = '\0';
  size_t used = describe_lateness(text, size);
  for (size_t i = 0; i < SN_ARRAY_LENGTH(losses); i++) used = add_loss(text, size, used, losses[i]);
}
