/* collect_budget: how often to take instants, so that Sonde uses no more CPU than it may.
 *
 * The worker looks every few instants at what they cost: its own CPU clock, and the time in jobs and events. The mean
 * interval becomes that cost over the share of a CPU that is allowed, but no shorter than asked for and at most 20
 * times as long. What delivering costs is taken off the share first.
 *
 * Contexts: the worker; sn_budget_begin before it starts. No lock.
 */
#ifndef SONDE_COLLECT_BUDGET_H
#define SONDE_COLLECT_BUDGET_H

#include "collect_state.h"

#define SN_DEFAULT_BUDGET 0.01 /* of one CPU */

void sn_budget_begin(int64_t now);
/* After each instant. */
void sn_budget_keep(int64_t now);

#endif
