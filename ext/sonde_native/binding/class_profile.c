/* Sonde::Native::Profile: a finished profile. Methods are called by any Ruby thread, with the GVL. Encoding, reading,
 * merging and sorting give the GVL up; meanwhile the object is busy and a second call on it raises. */
#include <ruby/encoding.h>
#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>

#include "../core/otlp_writer.h"
#include "../core/pprof_reader.h"
#include "../core/pprof_writer.h"
#include "../core/profile_merge.h"
#include "../core/profile_reshape.h"
#include "../core/profile_view.h"
#include "../collect/collect_flush.h"
#include "classes.h"
#include "raise.h"

typedef struct profile_object {
  sn_profile *profile; /* owned; NULL until it is made */
  bool busy;
} profile_object;

static VALUE profile_class;

static void profile_free(void *data) {
  profile_object *object = data;
  if (!object->busy) sn_profile_free(object->profile); /* busy: half changed by a thread of the parent process */
  free(object);
}

static size_t profile_size(const void *data) {
  const profile_object *object = data;
  return sizeof *object + (object->profile ? atomic_load(&object->profile->memory.used) : 0);
}

static const rb_data_type_t profile_type = {
    .wrap_struct_name = "Sonde::Native::Profile",
    .function = {.dmark = NULL, .dfree = profile_free, .dsize = profile_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE wrap_new(profile_object **object) {
  profile_object *fresh = calloc(1, sizeof *fresh);
  if (!fresh) rb_memerror();
  *object = fresh;
  return rb_data_typed_object_wrap(profile_class, fresh, &profile_type);
}

VALUE sn_profile_object(sn_profile *profile) {
  profile_object *object;
  VALUE self = wrap_new(&object);
  object->profile = profile;
  return self;
}

static profile_object *get(VALUE self) {
  profile_object *object = rb_check_typeddata(self, &profile_type);
  if (!object->profile) rb_raise(sn_error_class, "this profile is empty");
  if (object->busy) rb_raise(sn_error_class, "another thread is working on this profile");
  return object;
}

/* -- work without the GVL ------------------------------------------------------------------------------------------ */

typedef struct job {
  profile_object *object;
  profile_object *other;
  sn_status status;
  bool done;
  sn_sink sink;
  sn_memory memory;
  const uint8_t *bytes;
  size_t length;
  char error[120];
  const char *extra[64];
  uint32_t extra_count;
  VALUE kept; /* Array of the Strings in extra */
  uint32_t type, limit, count;
  sn_top_order order;
  sn_top_entry *entries;
  const sn_reshape *reshape;
  const sn_otlp_options *otlp;
} job;

/* An interrupt that is pending keeps the VM from giving the GVL up: served first, or the work is done with it. */
static void run_without_gvl(void *(*function)(void *), job *j) {
  j->object->busy = true;
  if (j->other) j->other->busy = true;
  for (int i = 0; i < 3 && !j->done; i++) rb_thread_call_without_gvl2(function, j, NULL, NULL);
  if (!j->done) function(j);
  j->object->busy = false;
  if (j->other) j->other->busy = false;
}

static void *encode(void *data) {
  job *j = data;
  j->status = sn_pprof_write(j->object->profile, "ruby", &j->sink);
  j->done = true;
  return NULL;
}

static VALUE sink_to_string(VALUE data) {
  job *j = (job *)data;
  return rb_str_new((const char *)j->sink.bytes, (long)j->sink.length);
}

static VALUE destroy_sink(VALUE data) {
  sn_sink_destroy(&((job *)data)->sink);
  return Qnil;
}

/* The bytes of profile.proto, not compressed. */
static VALUE profile_encode(VALUE self) {
  job j = {.object = get(self)};
  sn_memory_init(&j.memory, 0);
  sn_sink_init(&j.sink, &j.memory);
  run_without_gvl(encode, &j);
  if (j.status != SN_OK) {
    sn_sink_destroy(&j.sink);
    sn_check(j.status, "encoding a profile");
  }
  return rb_ensure(sink_to_string, (VALUE)&j, destroy_sink, (VALUE)&j);
}

static void *read_bytes(void *data) {
  job *j = data;
  j->status = sn_pprof_read(j->object->profile, j->bytes, j->length, j->error, sizeof j->error);
  j->done = true;
  return NULL;
}

/* Profile.read(bytes, memory_limit = 0) */
static VALUE profile_read(int argc, VALUE *argv, VALUE class) {
  (void)class;
  VALUE bytes, limit;
  rb_scan_args(argc, argv, "11", &bytes, &limit);
  SN_EXPECT_TYPE(bytes, T_STRING);
  size_t memory_limit = 0;
  if (!NIL_P(limit)) {
    SN_EXPECT_TYPE(limit, T_FIXNUM);
    SN_EXPECT(FIX2LONG(limit) >= 0, limit, "0 (no limit) or a number of bytes");
    memory_limit = (size_t)FIX2LONG(limit);
  }
  VALUE frozen = rb_str_new_frozen(bytes); /* nobody may change it while the GVL is away */
  job j = {.bytes = (const uint8_t *)RSTRING_PTR(frozen), .length = (size_t)RSTRING_LEN(frozen)};
  VALUE self = wrap_new(&j.object);
  j.object->profile = sn_profile_new();
  if (!j.object->profile) rb_memerror();
  j.object->profile->memory.limit = memory_limit;
  run_without_gvl(read_bytes, &j);
  RB_GC_GUARD(frozen);
  if (j.status == SN_MALFORMED || j.status == SN_TOO_LARGE) {
    rb_raise(sn_format_error_class, "not a pprof profile: %s", j.error[0] ? j.error : sn_status_text(j.status));
  }
  sn_check(j.status, "reading a profile");
  return self;
}

static void *merge(void *data) {
  job *j = data;
  j->status = sn_profile_merge(j->object->profile, j->other->profile, j->extra, j->extra_count);
  j->done = true;
  return NULL;
}

static int collect_extra(VALUE key, VALUE value, VALUE data) {
  job *j = (job *)data;
  SN_EXPECT_TYPE(key, T_STRING);
  SN_EXPECT_TYPE(value, T_STRING);
  SN_EXPECT(j->extra_count * 2 + 2 <= SN_ARRAY_LENGTH(j->extra), key, "one of at most 32 labels");
  /* Copies: nobody may change them while the GVL is away. */
  VALUE own_key = rb_str_new_frozen(key), own_value = rb_str_new_frozen(value);
  rb_ary_push(j->kept, own_key);
  rb_ary_push(j->kept, own_value);
  j->extra[j->extra_count * 2] = StringValueCStr(own_key);
  j->extra[j->extra_count * 2 + 1] = StringValueCStr(own_value);
  j->extra_count++;
  return ST_CONTINUE;
}

/* Adds another profile; labels: a Hash of Strings for its samples, or nil. Returns self. */
static VALUE profile_merge(VALUE self, VALUE other, VALUE labels) {
  job j = {.object = get(self), .other = get(other), .kept = rb_ary_new()};
  SN_EXPECT(self != other, other, "another profile");
  if (!NIL_P(labels)) {
    SN_EXPECT_TYPE(labels, T_HASH);
    rb_hash_foreach(labels, collect_extra, (VALUE)&j);
  }
  run_without_gvl(merge, &j);
  RB_GC_GUARD(j.kept);
  sn_check(j.status, "merging profiles");
  return self;
}

/* -- for backends -------------------------------------------------------------------------------------------------- */

/* The bytes of a String that is kept alive, and unchanged, by the Array. nil gives NULL. */
static const char *kept_text(VALUE kept, VALUE string) {
  if (NIL_P(string)) return NULL;
  SN_EXPECT_TYPE(string, T_STRING);
  VALUE own = rb_str_new_frozen(string);
  rb_ary_push(kept, own);
  return StringValueCStr(own);
}

static VALUE row_of(VALUE rows, long i, long width) {
  VALUE row = RARRAY_AREF(rows, i);
  SN_EXPECT_TYPE(row, T_ARRAY);
  SN_EXPECT(RARRAY_LEN(row) == width, row, "an Array of as many elements as its table has columns");
  return row;
}

static void *reshape(void *data) {
  job *j = data;
  j->status = sn_profile_reshape(j->object->profile, j->other->profile, j->reshape);
  j->done = true;
  return NULL;
}

static uint32_t number_of(VALUE number) {
  SN_EXPECT_TYPE(number, T_FIXNUM);
  SN_EXPECT(FIX2LONG(number) >= 0 && FIX2LONG(number) <= UINT32_MAX, number, "from 0 to 2^32 - 1");
  return (uint32_t)FIX2LONG(number);
}

/* reshape(types, labels, period_type, first, count, max_depth) -> another Profile. See core/profile_reshape.h.
 * types: [[from, type, unit], ...]; labels: [[key, value or nil, new key or nil, new value or nil], ...];
 * period_type: [type, unit] or nil */
static VALUE profile_reshape(VALUE self, VALUE types, VALUE labels, VALUE period, VALUE first, VALUE count,
                             VALUE max_depth) {
  enum { MOST = 64 };
  sn_reshape_type type_rows[MOST];
  sn_reshape_label label_rows[MOST];
  job j = {.other = get(self), .kept = rb_ary_new()};
  SN_EXPECT_TYPE(types, T_ARRAY);
  SN_EXPECT_TYPE(labels, T_ARRAY);
  SN_EXPECT(RARRAY_LEN(types) <= MOST, types, "at most 64 rules");
  SN_EXPECT(RARRAY_LEN(labels) <= MOST, labels, "at most 64 rules");
  sn_reshape how = {.types = type_rows, .labels = label_rows, .first = number_of(first), .count = number_of(count)};
  how.max_depth = number_of(max_depth);
  for (long i = 0; i < RARRAY_LEN(types); i++) {
    const VALUE row = row_of(types, i, 3);
    for (int k = 0; k < 3; k++) SN_EXPECT_TYPE(RARRAY_AREF(row, k), T_STRING);
    type_rows[how.type_count++] = (sn_reshape_type){.from = kept_text(j.kept, RARRAY_AREF(row, 0)),
                                                    .type = kept_text(j.kept, RARRAY_AREF(row, 1)),
                                                    .unit = kept_text(j.kept, RARRAY_AREF(row, 2))};
  }
  for (long i = 0; i < RARRAY_LEN(labels); i++) {
    const VALUE row = row_of(labels, i, 4);
    SN_EXPECT_TYPE(RARRAY_AREF(row, 0), T_STRING);
    label_rows[how.label_count++] = (sn_reshape_label){.key = kept_text(j.kept, RARRAY_AREF(row, 0)),
                                                       .value = kept_text(j.kept, RARRAY_AREF(row, 1)),
                                                       .new_key = kept_text(j.kept, RARRAY_AREF(row, 2)),
                                                       .new_value = kept_text(j.kept, RARRAY_AREF(row, 3))};
  }
  if (!NIL_P(period)) {
    SN_EXPECT_TYPE(period, T_ARRAY);
    SN_EXPECT(RARRAY_LEN(period) == 2, period, "a type and a unit");
    for (int k = 0; k < 2; k++) SN_EXPECT_TYPE(RARRAY_AREF(period, k), T_STRING);
    how.period_type = kept_text(j.kept, RARRAY_AREF(period, 0));
    how.period_unit = kept_text(j.kept, RARRAY_AREF(period, 1));
  }
  VALUE fresh = wrap_new(&j.object);
  j.object->profile = sn_profile_new();
  if (!j.object->profile) rb_memerror();
  j.object->profile->memory.limit = 0;
  j.reshape = &how;
  run_without_gvl(reshape, &j);
  RB_GC_GUARD(j.kept);
  sn_check(j.status, "reshaping a profile");
  return fresh;
}

static void *encode_otlp(void *data) {
  job *j = data;
  j->status = sn_otlp_write(j->object->profile, j->otlp, &j->sink);
  j->done = true;
  return NULL;
}

/* encode_otlp(resource, scope_name, scope_version, profile_id) -> bytes, not compressed. See core/otlp_writer.h.
 * resource: [[key, String or Integer], ...]; profile_id: 16 bytes */
static VALUE profile_encode_otlp(VALUE self, VALUE resource, VALUE name, VALUE version, VALUE id) {
  enum { MOST = 128 };
  sn_otlp_attribute attributes[MOST];
  sn_otlp_options options = {.resource = attributes};
  job j = {.object = get(self), .kept = rb_ary_new(), .otlp = &options};
  SN_EXPECT_TYPE(resource, T_ARRAY);
  SN_EXPECT(RARRAY_LEN(resource) <= MOST, resource, "at most 128 attributes");
  SN_EXPECT_TYPE(name, T_STRING);
  SN_EXPECT_TYPE(version, T_STRING);
  SN_EXPECT_TYPE(id, T_STRING);
  SN_EXPECT(RSTRING_LEN(id) == sizeof options.profile_id, id, "16 bytes");
  memcpy(options.profile_id, RSTRING_PTR(id), sizeof options.profile_id);
  options.scope_name = kept_text(j.kept, name);
  options.scope_version = kept_text(j.kept, version);
  for (long i = 0; i < RARRAY_LEN(resource); i++) {
    const VALUE row = row_of(resource, i, 2), value = RARRAY_AREF(row, 1);
    SN_EXPECT_TYPE(RARRAY_AREF(row, 0), T_STRING);
    sn_otlp_attribute *attribute = &attributes[options.resource_count++];
    *attribute = (sn_otlp_attribute){.key = kept_text(j.kept, RARRAY_AREF(row, 0))};
    if (RB_FIXNUM_P(value)) {
      attribute->number = FIX2LONG(value);
    } else {
      SN_EXPECT_TYPE(value, T_STRING);
      attribute->text = kept_text(j.kept, value);
    }
  }
  sn_memory_init(&j.memory, 0);
  sn_sink_init(&j.sink, &j.memory);
  run_without_gvl(encode_otlp, &j);
  RB_GC_GUARD(j.kept);
  if (j.status != SN_OK) {
    sn_sink_destroy(&j.sink);
    sn_check(j.status, "encoding a profile");
  }
  return rb_ensure(sink_to_string, (VALUE)&j, destroy_sink, (VALUE)&j);
}

static sn_status text_label(sn_profile *p, const char *key, const char *text, sn_label *label) {
  *label = (sn_label){.key = 0};
  sn_status status = sn_profile_string(p, key, strlen(key), &label->key);
  return status == SN_OK ? sn_profile_string(p, text, strlen(text), &label->str) : status;
}

/* The labels of the main thread of that process; nil: none. */
static sn_status labels_of_main(sn_profile *p, VALUE pid, uint32_t *set) {
  sn_label labels[3];
  char number[24];
  if (NIL_P(pid)) return sn_profile_labels(p, labels, 0, set);
  snprintf(number, sizeof number, "%ld", FIX2LONG(pid));
  sn_status status = text_label(p, "thread id", number, &labels[0]);
  if (status == SN_OK) status = text_label(p, "thread name", "main", &labels[1]);
  if (status == SN_OK) status = text_label(p, "state", "running", &labels[2]);
  return status == SN_OK ? sn_profile_labels(p, labels, SN_ARRAY_LENGTH(labels), set) : status;
}

static sn_status stack_of_one(sn_profile *p, VALUE name, uint32_t *stack) {
  sn_function function = {.filename = 0};
  sn_location location = {.line = 0};
  uint32_t id = 0;
  sn_status status = sn_profile_string(p, RSTRING_PTR(name), (size_t)RSTRING_LEN(name), &function.name);
  if (status == SN_OK) status = sn_profile_function(p, function, &location.function);
  if (status == SN_OK) status = sn_profile_location(p, location, &id);
  return status == SN_OK ? sn_profile_stack(p, &id, 1, stack) : status;
}

/* add_cpu(name, nanoseconds, pid): adds CPU time that was measured, but not sampled, to a stack of one frame of that
 * name, on the main thread of that process; nil: of nobody. Answers whether the profile is one of CPU time. */
static VALUE profile_add_cpu(VALUE self, VALUE name, VALUE nanoseconds, VALUE pid) {
  sn_profile *p = get(self)->profile;
  SN_EXPECT_TYPE(name, T_STRING);
  SN_EXPECT_TYPE(nanoseconds, T_FIXNUM);
  SN_EXPECT(FIX2LONG(nanoseconds) >= 0, nanoseconds, "not negative");
  if (!NIL_P(pid)) SN_EXPECT_TYPE(pid, T_FIXNUM);
  int type = sn_profile_find_type(p, "cpu-time");
  if (type < 0) return Qfalse;
  int64_t values[SN_PROFILE_MAX_TYPES] = {0};
  values[type] = FIX2LONG(nanoseconds);
  uint32_t stack, set;
  sn_status status = stack_of_one(p, name, &stack);
  if (status == SN_OK) status = labels_of_main(p, pid, &set);
  if (status == SN_OK) status = sn_profile_add_sample(p, stack, set, values);
  sn_check(status, "adding CPU time");
  return Qtrue;
}

/* Adds a remark. Returns self. */
static VALUE profile_comment(VALUE self, VALUE text) {
  SN_EXPECT_TYPE(text, T_STRING);
  sn_profile *p = get(self)->profile;
  sn_check(sn_profile_add_comment(p, RSTRING_PTR(text), (size_t)RSTRING_LEN(text)), "adding a comment");
  return self;
}

/* -- what it says -------------------------------------------------------------------------------------------------- */

static VALUE text(const sn_profile *p, uint32_t id) {
  size_t length;
  const char *bytes = sn_string_table_get(&p->strings, id, &length);
  return rb_enc_str_new(bytes, (long)length, rb_utf8_encoding());
}

static VALUE profile_sample_types(VALUE self) {
  const sn_profile *p = get(self)->profile;
  VALUE types = rb_ary_new();
  for (uint32_t i = 0; i < p->type_count; i++) {
    rb_ary_push(types, rb_assoc_new(text(p, p->types[i].type), text(p, p->types[i].unit)));
  }
  return types;
}

static VALUE profile_totals(VALUE self) {
  const sn_profile *p = get(self)->profile;
  int64_t totals[SN_PROFILE_MAX_TYPES];
  sn_profile_totals(p, totals);
  VALUE hash = rb_hash_new();
  for (uint32_t i = 0; i < p->type_count; i++) rb_hash_aset(hash, text(p, p->types[i].type), LL2NUM(totals[i]));
  return hash;
}

static void *find_top(void *data) {
  job *j = data;
  j->status = sn_profile_top(j->object->profile, j->type, j->order, j->entries, j->limit, &j->count);
  j->done = true;
  return NULL;
}

static VALUE top_rows(VALUE data) {
  job *j = (job *)data;
  const sn_profile *p = j->object->profile;
  run_without_gvl(find_top, j);
  sn_check(j->status, "sorting a profile");
  VALUE rows = rb_ary_new();
  for (uint32_t i = 0; i < j->count; i++) {
    const sn_top_entry *e = &j->entries[i];
    const sn_function *f = &p->functions[e->function];
    VALUE row[] = {text(p, f->name), text(p, f->filename), LL2NUM(f->start_line), LL2NUM(e->flat),
                   LL2NUM(e->cumulative)};
    rb_ary_push(rows, rb_ary_new_from_values(SN_ARRAY_LENGTH(row), row));
  }
  return rows;
}

static VALUE free_entries(VALUE data) {
  free(((job *)data)->entries);
  return Qnil;
}

/* top(type_name, limit, cumulative) -> [[function, file, first line, flat, cumulative], ...] */
static VALUE profile_top(VALUE self, VALUE type_name, VALUE limit, VALUE cumulative) {
  enum { LARGEST = 1000000 };
  job j = {.object = get(self), .order = RTEST(cumulative) ? SN_TOP_BY_CUMULATIVE : SN_TOP_BY_FLAT};
  SN_EXPECT_TYPE(type_name, T_STRING);
  SN_EXPECT_TYPE(limit, T_FIXNUM);
  SN_EXPECT(FIX2LONG(limit) >= 1 && FIX2LONG(limit) <= LARGEST, limit, "between 1 and 1000000");
  int type = sn_profile_find_type(j.object->profile, StringValueCStr(type_name));
  SN_EXPECT(type >= 0, type_name, "a sample type of the profile");
  j.type = (uint32_t)type;
  j.limit = (uint32_t)FIX2LONG(limit);
  uint32_t functions = j.object->profile->function_count;
  if (j.limit > functions) j.limit = functions > 0 ? functions : 1;
  j.entries = calloc(j.limit, sizeof *j.entries);
  if (!j.entries) rb_memerror();
  return rb_ensure(top_rows, (VALUE)&j, free_entries, (VALUE)&j);
}

static VALUE profile_start_ns(VALUE self) {
  return LL2NUM(get(self)->profile->time_nanos);
}

static VALUE profile_duration_ns(VALUE self) {
  return LL2NUM(get(self)->profile->duration_nanos);
}

static VALUE profile_sample_count(VALUE self) {
  return UINT2NUM(get(self)->profile->sample_count);
}

static VALUE profile_comments(VALUE self) {
  const sn_profile *p = get(self)->profile;
  VALUE comments = rb_ary_new();
  for (uint32_t i = 0; i < p->comment_count; i++) rb_ary_push(comments, text(p, p->comments[i]));
  return comments;
}

static VALUE profile_inspect(VALUE self) {
  const sn_profile *p = get(self)->profile;
  return rb_sprintf("#<Sonde::Native::Profile %u samples, %u stacks, %u functions, %.3f s>", p->sample_count,
                    p->stacks.count, p->function_count, (double)p->duration_nanos / 1e9);
}

void sn_define_profile(VALUE native) {
  profile_class = rb_define_class_under(native, "Profile", rb_cObject);
  rb_gc_register_mark_object(profile_class);
  rb_undef_alloc_func(profile_class); /* neither allocate nor dup can make one without its insides */
  rb_undef_method(rb_singleton_class(profile_class), "new");
  rb_define_singleton_method(profile_class, "read", profile_read, -1);
  rb_define_method(profile_class, "encode", profile_encode, 0);
  rb_define_method(profile_class, "merge", profile_merge, 2);
  rb_define_method(profile_class, "reshape", profile_reshape, 6);
  rb_define_method(profile_class, "encode_otlp", profile_encode_otlp, 4);
  rb_define_method(profile_class, "add_cpu", profile_add_cpu, 3);
  rb_define_method(profile_class, "comment", profile_comment, 1);
  rb_define_method(profile_class, "sample_types", profile_sample_types, 0);
  rb_define_method(profile_class, "totals", profile_totals, 0);
  rb_define_method(profile_class, "top", profile_top, 3);
  rb_define_method(profile_class, "start_ns", profile_start_ns, 0);
  rb_define_method(profile_class, "duration_ns", profile_duration_ns, 0);
  rb_define_method(profile_class, "sample_count", profile_sample_count, 0);
  rb_define_method(profile_class, "comments", profile_comments, 0);
  rb_define_method(profile_class, "inspect", profile_inspect, 0);
}
