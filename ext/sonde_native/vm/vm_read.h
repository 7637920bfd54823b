/* vm_read: reads of our own memory through the kernel: a bad address is an answer, not a crash. For the files vm_*
 * only. Contexts: any, signal included. */
#ifndef SONDE_VM_READ_H
#define SONDE_VM_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* False unless all of it could be read. */
bool sn_vm_read(uintptr_t address, void *to, size_t size);

/* In a forked child, before anything is read. A plain store. */
void sn_vm_read_after_fork(void);

/* The same for several parts (at most IOV_MAX), read in this order; `all`: the sum of their sizes. */
bool sn_vm_read_parts(const struct iovec *to, const struct iovec *from, uint32_t n, size_t all);

#endif
