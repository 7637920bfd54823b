/* vm_read: see the header. No state, no lock. */
#define _GNU_SOURCE
#include "vm_read.h"

#include <unistd.h>

bool sn_vm_read_parts(const struct iovec *to, const struct iovec *from, uint32_t n, size_t all) {
  return process_vm_readv(getpid(), to, n, from, n, 0) == (ssize_t)all;
}

bool sn_vm_read(uintptr_t address, void *to, size_t size) {
  struct iovec local = {.iov_base = to, .iov_len = size};
  struct iovec remote = {.iov_base = (void *)address, .iov_len = size};
  return address && sn_vm_read_parts(&local, &remote, 1, size);
}
