/* vm_thread: see the header. Called with the GVL by jobs, GVL events and flushes; the tables here belong to the GVL. */
#include "vm_thread.h"

#include <ruby/debug.h>
#include <ruby/encoding.h>
#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>

#include "vm_features.h"

#if SN_VM_HAS_RACTOR_STORAGE
#include <ruby/ractor.h>
#endif
#include "vm_layout.h"

static VALUE main_thread;
/* Unbound, so that overrides are not called. */
static VALUE method_name, method_inspect, method_alive, method_native_id;
static ID id_bind_call;

static VALUE thread_method(const char *name) {
  VALUE method = rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(rb_intern(name)));
  rb_gc_register_mark_object(method);
  return method;
}

static VALUE method_list; /* the object, as a method of the class itself cannot be unbound */

static VALUE call_original(VALUE method, VALUE thread) {
  return rb_funcall(method, id_bind_call, 1, thread);
}

#if SN_VM_HAS_THREAD_STORAGE

static rb_internal_thread_specific_key_t key;
static bool has_key;

static VALUE create_key(VALUE unused) {
  (void)unused;
  key = rb_internal_thread_specific_key_create();
  return Qnil;
}

static const char *storage_init(void) {
  int failed = 0;
  rb_protect(create_key, Qnil, &failed);
  if (failed) {
    rb_set_errinfo(Qnil);
    return "no thread storage: Sonde must be loaded before the first Ractor is made";
  }
  /* The VM has room for 8 keys but hands out a ninth, past its array. */
  if (key >= 8) return "all 8 thread storage keys of this process are taken by other libraries";
  has_key = true;
  return NULL;
}

void *sn_vm_thread_data(VALUE thread) {
  return has_key ? rb_internal_thread_specific_get(thread, key) : NULL;
}

void sn_vm_thread_set_data(VALUE thread, void *data) {
  if (has_key) rb_internal_thread_specific_set(thread, key, data);
}

void sn_vm_thread_clear_data(void) {}

#else

/* Open addressing by the thread's address; grows; removal only all at once (a thread's address may come back for
 * another thread: the caller compares). */
static struct {
  VALUE thread;
  void *data;
} * slots;
static size_t slot_capacity, slot_count;

static size_t slot_of(VALUE thread) {
  size_t i = (size_t)((thread >> 3) * 0x9E3779B97F4A7C15u >> 20) & (slot_capacity - 1);
  while (slots[i].thread && slots[i].thread != thread) i = (i + 1) & (slot_capacity - 1);
  return i;
}

static bool grow_slots(void) {
  size_t old_capacity = slot_capacity;
  void *old = slots;
  size_t capacity = old_capacity ? old_capacity * 2 : 256;
  void *fresh = calloc(capacity, sizeof *slots);
  if (!fresh) return false;
  __typeof__(slots) from = old;
  slots = fresh;
  slot_capacity = capacity;
  for (size_t i = 0; i < old_capacity; i++) {
    if (from[i].thread) slots[slot_of(from[i].thread)] = from[i];
  }
  free(old);
  return true;
}

static const char *storage_init(void) {
  return grow_slots() ? NULL : "out of memory";
}

void *sn_vm_thread_data(VALUE thread) {
  return slots[slot_of(thread)].data;
}

void sn_vm_thread_set_data(VALUE thread, void *data) {
  if (slot_count * 2 >= slot_capacity && !grow_slots()) return;
  size_t i = slot_of(thread);
  if (!slots[i].thread) slot_count++;
  slots[i].thread = thread;
  slots[i].data = data;
}

void sn_vm_thread_clear_data(void) {
  memset(slots, 0, slot_capacity * sizeof *slots);
  slot_count = 0;
}

#endif

#if SN_VM_HAS_RACTOR_STORAGE

/* rb_thread_main would do, but for the first events of a new Ractor: that has no main thread yet, and the function
 * crashes. */
static rb_ractor_local_key_t main_ractor_key;

static void forget(void *unused) {
  (void)unused;
}

static void main_ractor_init(void) {
  static const struct rb_ractor_local_storage_type type = {.mark = forget, .free = forget};
  main_ractor_key = rb_ractor_local_storage_ptr_newkey(&type);
  rb_ractor_local_storage_ptr_set(main_ractor_key, &main_ractor_key);
}

bool sn_vm_thread_in_main_ractor(void) {
  return rb_ractor_local_storage_ptr(main_ractor_key) == &main_ractor_key;
}

#else

static void main_ractor_init(void) {}

bool sn_vm_thread_in_main_ractor(void) {
  return rb_thread_main() == main_thread;
}

#endif

const char *sn_vm_thread_init(void) {
  id_bind_call = rb_intern("bind_call");
  method_name = thread_method("name");
  method_inspect = thread_method("inspect");
  method_alive = thread_method("alive?");
  if (SN_VM_HAS_NATIVE_THREAD_ID) method_native_id = thread_method("native_thread_id");
  method_list = rb_obj_method(rb_cThread, ID2SYM(rb_intern("list")));
  rb_gc_register_mark_object(method_list);
  main_thread = rb_thread_main();
  main_ractor_init();
  return storage_init();
}

void sn_vm_thread_after_fork(void) {
  main_thread = rb_thread_main();
}

bool sn_vm_thread_is_main(VALUE thread) {
  return thread == main_thread;
}

VALUE sn_vm_thread_list(void) {
  return rb_method_call(0, NULL, method_list);
}

pid_t sn_vm_thread_native_id(VALUE thread) {
  if (!SN_VM_HAS_NATIVE_THREAD_ID) return sn_vm_layout_native_id(thread);
  VALUE id = call_original(method_native_id, thread);
  return RB_FIXNUM_P(id) ? (pid_t)FIX2LONG(id) : 0;
}

bool sn_vm_thread_alive(VALUE thread) {
  return RTEST(call_original(method_alive, thread));
}

/* "#<Thread:0x000... file.rb:12 sleep>" -> "file.rb:12" */
static VALUE place_of_birth(VALUE thread) {
  VALUE text = call_original(method_inspect, thread);
  const char *bytes = RSTRING_PTR(text);
  const char *end = bytes + RSTRING_LEN(text);
  const char *from = memchr(bytes, ' ', (size_t)(end - bytes));
  const char *to = end;
  while (to > bytes && to[-1] != ' ') to--;
  if (!from || to - 1 <= from) return rb_str_new_lit("(unnamed thread)");
  VALUE place = rb_enc_str_new(from + 1, to - 1 - (from + 1), rb_enc_get(text));
  RB_GC_GUARD(text);
  return place;
}

VALUE sn_vm_thread_name(VALUE thread) {
  VALUE name = call_original(method_name, thread);
  if (RB_TYPE_P(name, T_STRING) && RSTRING_LEN(name) > 0) return name;
  if (sn_vm_thread_is_main(thread)) return rb_str_new_lit("main");
  return place_of_birth(thread);
}
