/* vm_thread: what Ruby knows of its threads: list, native id, name; one pointer of ours for each thread; the main
 * Ractor.
 *
 * Contexts: gvl, unless said otherwise. Functions that call into Ruby may raise; they say so.
 */
#ifndef SONDE_VM_THREAD_H
#define SONDE_VM_THREAD_H

#include <ruby.h>
#include <sys/types.h>

#include "../core/base.h"

/* Once, at load. NULL, or a static reason why threads cannot be told apart. May raise. */
const char *sn_vm_thread_init(void);

/* Whether the calling thread belongs to the main Ractor. Contexts: gvl, gc; also in GVL events of the thread itself. */
bool sn_vm_thread_in_main_ractor(void);
/* After a fork: the forking thread is now the main one. */
void sn_vm_thread_after_fork(void);
bool sn_vm_thread_is_main(VALUE thread);

/* Our pointer for a thread, or NULL. Contexts: any thread that holds the GVL, GVL events included. */
void *sn_vm_thread_data(VALUE thread);
void sn_vm_thread_set_data(VALUE thread, void *data);
/* Forgets the pointers of all threads (where the storage is ours). */
void sn_vm_thread_clear_data(void);

/* An Array of the living threads of the main Ractor. May raise NoMemoryError. */
VALUE sn_vm_thread_list(void);
/* The kernel's id, or 0 when unknown (not started, ended, M:N). May raise. */
pid_t sn_vm_thread_native_id(VALUE thread);
/* The thread's name; else "main", else the place where it was made ("file.rb:12"); a String. Never calls a method that
 * the program has overridden. May raise NoMemoryError. */
VALUE sn_vm_thread_name(VALUE thread);
bool sn_vm_thread_alive(VALUE thread);

#endif
