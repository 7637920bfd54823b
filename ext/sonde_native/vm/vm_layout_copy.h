/* vm_layout_copy: reads of our own memory through the kernel: a bad address is an answer, not a crash. For
 * vm_layout*.c. */
#ifndef SONDE_VM_LAYOUT_COPY_H
#define SONDE_VM_LAYOUT_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False unless all of it could be read. Contexts: any. */
bool sn_vm_read(uintptr_t address, void *to, size_t size);

#endif
