/* vm_weak: numbered weak references to any objects, by the VM's own ObjectSpace::WeakMap.
 *
 * No method of the objects is called; frozen ones and BasicObjects will do. Methods of WeakMap are those it had when
 * the table was made, whatever the program does to the class.
 * Contexts: gvl, at safepoints; calls C methods of Ruby, so other threads may run; may raise (no memory).
 */
#ifndef SONDE_VM_WEAK_H
#define SONDE_VM_WEAK_H

#include <ruby.h>

#include "../core/base.h"

/* NULL, or a static reason why weak references are not safe on this Ruby. Contexts: any. */
const char *sn_vm_weak_refusal(void);

typedef struct sn_vm_weak {
  VALUE map, set, get, forget; /* marked by the owner; Qfalse: there is none */
} sn_vm_weak;

void sn_vm_weak_make(sn_vm_weak *weak);
void sn_vm_weak_mark(const sn_vm_weak *weak);

void sn_vm_weak_set(const sn_vm_weak *weak, uint32_t number, VALUE object);
/* Qnil: it is gone. */
VALUE sn_vm_weak_get(const sn_vm_weak *weak, uint32_t number);
/* Up to 3.2 this does nothing: the reference goes with its object. */
void sn_vm_weak_forget(const sn_vm_weak *weak, uint32_t number);

#endif
