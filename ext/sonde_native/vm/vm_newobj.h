/* vm_newobj: the VM's hook on the birth of objects: on, off, what it costs, where it must not be used; and the VM's own
 * count.
 *
 * The hook costs 10 to 30 ns an object and is on for short windows only. It is on when it is switched on, for all
 * threads of the main Ractor, and stays on in a forked child until somebody switches it off.
 * Contexts: gvl of the main Ractor, unless said otherwise.
 */
#ifndef SONDE_VM_NEWOBJ_H
#define SONDE_VM_NEWOBJ_H

#include <ruby.h>

#include "../core/base.h"

typedef struct sn_vm_newobj_callbacks {
  /* An object was born (see sn_vm_newobj_object). No Ruby API, the C library's memory only. */
  void (*born)(const void *birth);
  /* Up to 3.2: a Ractor is about to be made, after which the hook must not be on any more. */
  void (*ractor)(void);
} sn_vm_newobj_callbacks;

/* NULL, or a static reason why the hook must not be used in this process (now). Once a reason, always one. */
const char *sn_vm_newobj_refusal(void);

/* Makes the hook ready (once) and watches for Ractors where that is needed. May raise. */
void sn_vm_newobj_prepare(const sn_vm_newobj_callbacks *callbacks);

/* Not inside a hook or an event: the VM allocates. Both may be called twice. */
void sn_vm_newobj_on(void);
void sn_vm_newobj_off(void);
bool sn_vm_newobj_is_on(void);

/* What the hook, with the callback as it is now, adds to the birth of an object, in nanoseconds. Makes some 10,000
 * objects. May raise. */
double sn_vm_newobj_cost(void);

/* Its flags and class are set, nothing else is. Contexts: the callback. */
VALUE sn_vm_newobj_object(const void *birth);
/* A word that is the same for objects of one class made by one instruction of a program in Ruby (or, where the VM's
 * control frames are not known, for all of one class): only a hint. Contexts: the callback. */
uint64_t sn_vm_newobj_place(const void *birth);

/* Objects that were ever made, by all Ractors. */
uint64_t sn_vm_newobj_count(void);

/* Whether Ractors other than the main one may be making objects. May call Ruby. */
bool sn_vm_newobj_other_ractors(void);

/* Whether compiled code (YJIT) runs, which leaves a loop for long at each interrupt. May call Ruby. */
bool sn_vm_newobj_compiled_code(void);

#endif
