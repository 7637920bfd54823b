/* vm_selftest: checks at load that what we believe of this VM and this machine holds; what fails is off, with a reason.
 *
 * Contexts: gvl, once at load; results may be read at any time afterwards.
 */
#ifndef SONDE_VM_SELFTEST_H
#define SONDE_VM_SELFTEST_H

#include <ruby.h>

#include "../core/base.h"

/* Runs all tests. NULL when this process can be profiled, else the static reason why not. May raise NoMemoryError. */
const char *sn_vm_selftest_run(void);

/* Name and reason (NULL: works) of the test with this number; false past the last. */
bool sn_vm_selftest_result(uint32_t number, const char **name, const char **reason);

/* NULL when this Ruby is among those that Sonde was tried on, else a static sentence about what follows from that.
 * Contexts: any. */
const char *sn_vm_selftest_untried(void);

#endif
