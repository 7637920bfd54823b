/* vm_layout_table: offsets of the private words (LP64, little endian), for vm_layout*.c and vm_peek.c. */
#ifndef SONDE_VM_LAYOUT_TABLE_H
#define SONDE_VM_LAYOUT_TABLE_H

#include "vm_features.h"

enum {
  /* thread struct */
  TH_SELF = 16,
  TH_EC = SN_RUBY_AT_LEAST(3, 2)   ? 48
          : SN_RUBY_AT_LEAST(3, 0) ? 40
                                   : 32,
  TH_PTHREAD = SN_RUBY_AT_LEAST(3, 0) ? 80 : 72, /* only read where SN_VM_HAS_NATIVE_THREAD_ID is false */
  /* execution context */
  EC_VM_STACK = 0,
  EC_VM_STACK_SIZE = 8,
  EC_CFP = 16,
  EC_INTERRUPT_MASK = SN_RUBY_AT_LEAST(3, 1) ? 36 : 44,
  EC_THREAD = SN_RUBY_AT_LEAST(3, 1) ? 48 : 56,
  /* control frame */
  CFP_PC = 0,
  CFP_SP = 8,
  CFP_ISEQ = 16,
  CFP_EP = 32,
  CFP_SIZE = SN_RUBY_AT_LEAST(3, 3)   ? 56
             : SN_RUBY_AT_LEAST(3, 1) ? 64
                                      : 56,
  /* iseq and its body */
  ISEQ_BODY = 16,
  BODY_SIZE = 4,
  BODY_ENCODED = 8,
  /* the VM's event of an object's birth */
  BIRTH_EC = 8,
  BIRTH_CFP = 16,
  BIRTH_OBJECT = 56,
  /* method entry and its definition */
  ME_DEFINITION = 16,
  ME_CALLED_ID = 24,
  SVAR_ENTRY = 8,

  /* The GVL's owner in the main Ractor's struct (2.7: in the VM's), with the C library's usual types; elsewhere it is
   * searched for. On 3.0 and 3.2 another word names the same threads, so that a search alone finds two. */
  OWNER_KNOWN = SN_RUBY_AT_LEAST(3, 0) ? 336 : 8,

  /* the VM, from 3.0 on */
  VM_RACTOR_COUNT = 24, /* 32 bits */
  VM_MAIN_RACTOR = 32,

  INTERRUPT_POSTPONED_JOB = 0x04,
  ENV_LOCAL = 0x2,
  FRAME_C = 0x80,
  IMEMO_SVAR = 2,
  IMEMO_ENTRY = 6,
  METHOD_ISEQ = 0,
  METHOD_C = 1,
  METHOD_BLOCK = 4,
  METHOD_REFINED = 11,
};

static inline uint64_t word_at(uintptr_t address, int offset) {
  return *(const uint64_t *)(address + (uintptr_t)offset);
}

#endif
