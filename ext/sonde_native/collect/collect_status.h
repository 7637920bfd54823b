/* collect_status: what the engine says of itself: abilities, costs, losses. Contexts: gvl. */
#ifndef SONDE_COLLECT_STATUS_H
#define SONDE_COLLECT_STATUS_H

#include "collect_state.h"

typedef struct sn_feature {
  const char *name;
  const char *reason; /* NULL: it works */
} sn_feature;

/* The feature with this number (0, 1, ...); false past the last. */
bool sn_engine_feature(uint32_t number, sn_feature *feature);

bool sn_engine_measures_gvl_wait(void);

uint32_t sn_engine_window_count(void);
/* CPU of the worker, and time in jobs, events and hooks that booked something, since the engine started. */
uint64_t sn_engine_own_cpu_ns(void);
/* Bytes of both slots, of thread entries and of the walk buffer. */
size_t sn_engine_memory(void);

/* One line about what this run could not see well, for a profile's comments; empty when there is nothing to say. */
void sn_engine_describe_losses(char *text, size_t size);

#endif
