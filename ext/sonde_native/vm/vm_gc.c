/* vm_gc: see the header. Called with the GVL by jobs, flushes and the hooks on collections. */
#include "vm_gc.h"

#include "vm_features.h"

static const char *const causes[] = {"unknown", "newobj", "malloc", "method", "capi", "stress"};
static const char *const types[] = {"minor", "major", "compaction"};

static VALUE symbols[SN_ARRAY_LENGTH(causes)];
static VALUE key_cause, key_major, key_compactions, key_time;
static size_t compactions; /* so far */
static bool compacting;    /* the latest collection was one */
static size_t collections;

static VALUE symbol(const char *name) {
  return ID2SYM(rb_intern(name)); /* of names interned by C: never collected */
}

static VALUE count_compactions(VALUE unused) {
  (void)unused;
  return SIZET2NUM(rb_gc_stat(key_compactions));
}

/* A collector that is not the VM's own may not know the word. */
static void find_compactions(void) {
  int raised = 0;
  key_compactions = symbol("compact_count");
  VALUE count = rb_protect(count_compactions, Qnil, &raised);
  if (raised) {
    rb_set_errinfo(Qnil);
    key_compactions = 0;
  } else {
    compactions = NUM2SIZET(count);
  }
}

void sn_vm_gc_init(void) {
  if (key_cause) return;
  for (size_t i = 0; i < SN_ARRAY_LENGTH(causes); i++) symbols[i] = symbol(causes[i]);
  key_major = symbol("major_by");
  key_time = symbol("time");
  key_cause = symbol("gc_by");
  rb_gc_latest_gc_info(key_cause); /* the first call makes the VM's own symbols */
  rb_gc_latest_gc_info(key_major);
  find_compactions();
  sn_vm_gc_clock();
}

static bool is_compaction(void) {
  if (!key_compactions) return false;
  size_t count = rb_gc_count();
  if (count == collections) return compacting;
  size_t now = rb_gc_stat(key_compactions);
  compacting = now != compactions;
  compactions = now;
  collections = count;
  return compacting;
}

sn_vm_gc_kind sn_vm_gc_latest(void) {
  VALUE by = rb_gc_latest_gc_info(key_cause);
  sn_vm_gc_kind kind = {.cause = 0, .type = NIL_P(rb_gc_latest_gc_info(key_major)) ? 0 : 1};
  for (uint32_t i = 1; i < SN_ARRAY_LENGTH(causes); i++) {
    if (symbols[i] == by) kind.cause = i;
  }
  if (is_compaction()) kind.type = 2;
  return kind;
}

const char *sn_vm_gc_cause(uint32_t cause) {
  return causes[cause < SN_ARRAY_LENGTH(causes) ? cause : 0];
}

const char *sn_vm_gc_type(uint32_t type) {
  return types[type < SN_ARRAY_LENGTH(types) ? type : 0];
}

uint64_t sn_vm_gc_clock(void) {
  return SN_VM_HAS_GC_TOTAL_TIME ? rb_gc_stat(key_time) : rb_gc_count();
}
