/* vm_object: what may be known of an object without asking it: its class and that class's name, its size, whether it is
 * the VM's own. No method of the object or of its class is called.
 *
 * A class is one word: a VALUE that must be marked while it is kept, or, below SN_VM_FIRST_CLASS, one of the VM's
 * internal kinds.
 */
#ifndef SONDE_VM_OBJECT_H
#define SONDE_VM_OBJECT_H

#include <ruby.h>

#include "../core/base.h"

enum { SN_VM_FIRST_CLASS = 64 };

/* Of an object that was just born or lives. Contexts: gvl, inside the VM's allocation hook. */
uint64_t sn_vm_object_class(VALUE object);

/* Its name as the program writes it, without heap addresses: "Foo::Bar", "#<Class>", "(VM internal, imemo)". A String.
 * Contexts: gvl, ordinary Ruby context. May raise NoMemoryError. */
VALUE sn_vm_object_class_name(uint64_t word);

/* Whether the VM's measure may be asked about it: not one of the VM's private kinds, not freed. The slot must be
 * mapped. Contexts: gvl, gc, hooks. */
bool sn_vm_object_is_measurable(VALUE object);
/* Whether it is of a kind that may be much larger than its slot, and that the VM measures by itself, in whatever state.
 * The slot must be mapped. Contexts: gvl, gc, hooks. */
bool sn_vm_object_has_buffer(VALUE object);
/* Whether a program can see it. The slot must be mapped. Contexts: gvl. */
bool sn_vm_object_is_visible(VALUE object);

/* Bytes by the VM's own measure, its slot included. Only of measurable objects. May call an extension's size function.
 * Contexts: gvl, at safepoints. */
size_t sn_vm_object_size(VALUE object);

/* Bytes of the slot that the VM gives to an object of which nothing else is known. */
size_t sn_vm_object_slot_size(void);

#endif
