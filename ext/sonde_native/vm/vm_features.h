/* vm_features: the only reader of Ruby's version macros. Each fact is positive, with the Ruby it begins or ends with
 * and why it matters; everything else in the extension asks for a fact, never for a version.
 */
#ifndef SONDE_VM_FEATURES_H
#define SONDE_VM_FEATURES_H

#include <ruby/version.h>

#define SN_RUBY_AT_LEAST(major, minor) \
  (RUBY_API_VERSION_MAJOR > (major) || (RUBY_API_VERSION_MAJOR == (major) && RUBY_API_VERSION_MINOR >= (minor)))

/* 3.3: GVL events that name their thread. (3.2 has the events, without the thread.) */
#define SN_VM_HAS_GVL_EVENTS SN_RUBY_AT_LEAST(3, 3)

/* 3.3: postponed jobs that any native thread may trigger (3.3.0 itself reaches only the main thread: see
 * vm_selftest). */
#define SN_VM_HAS_TRIGGERED_JOBS SN_RUBY_AT_LEAST(3, 3)

/* 3.3: the stack of another thread, by public API. Before, own reads of a few private words (vm_layout). */
#define SN_VM_HAS_THREAD_FRAMES SN_RUBY_AT_LEAST(3, 3)

/* 3.3: storage in the Thread for extensions. */
#define SN_VM_HAS_THREAD_STORAGE SN_RUBY_AT_LEAST(3, 3)

/* 3.3: GC hooks no longer slow every allocation down, and no longer crash when a Ractor is made. Before, the pause is
 * found by looking at the collector's own flag at each instant. */
#define SN_VM_HAS_CHEAP_GC_HOOKS SN_RUBY_AT_LEAST(3, 3)

/* 3.1: GC.total_time. */
#define SN_VM_HAS_GC_TOTAL_TIME SN_RUBY_AT_LEAST(3, 1)

/* 3.1: Thread#native_thread_id. */
#define SN_VM_HAS_NATIVE_THREAD_ID SN_RUBY_AT_LEAST(3, 1)

/* Up to 3.2 a native thread serves several Ruby threads in turn, so its CPU clock does not begin at zero with them. */
#define SN_VM_REUSES_NATIVE_THREADS (!SN_RUBY_AT_LEAST(3, 3))

/* Up to 3.1 rb_profile_frames ends with a dummy frame under the main program. */
#define SN_VM_HAS_DUMMY_FRAME (!SN_RUBY_AT_LEAST(3, 2))

/* 4.0 is the newest Ruby whose private words are known and that Sonde was tried on. On a later one nothing private is
 * read, and `sonde doctor` says so. (4.1 keeps some frames of compiled code in records of its own.) */
#define SN_VM_NEWER_THAN_KNOWN SN_RUBY_AT_LEAST(4, 1)
#define SN_VM_CAN_PEEK (!SN_VM_NEWER_THAN_KNOWN)

/* 3.0: C functions are in rb_profile_frames. */
#define SN_VM_SHOWS_C_FUNCTIONS SN_RUBY_AT_LEAST(3, 0)

/* 3.0: Ractors, hence more than one GVL. */
#define SN_VM_HAS_RACTORS SN_RUBY_AT_LEAST(3, 0)

/* 3.1: storage in the Ractor for extensions (3.0 declares it, but does not export it). */
#define SN_VM_HAS_RACTOR_STORAGE SN_RUBY_AT_LEAST(3, 1)

/* 3.0 to 3.2: a hook on allocations beside a second Ractor crashes the VM. */
#define SN_VM_NEWOBJ_FEARS_RACTORS (SN_VM_HAS_RACTORS && !SN_RUBY_AT_LEAST(3, 3))

/* 4.0: a hook on allocations is called by every Ractor; before, by the one that switched it on. */
#define SN_VM_NEWOBJ_IS_GLOBAL SN_RUBY_AT_LEAST(4, 0)

#endif
