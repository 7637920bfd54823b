/* loader: opens the engine's library in such a way that neither disturbs the other extensions of the process.
 *
 * Ruby loads an extension with its symbols in view of all others. The engine must not be: its names stay its own
 * (RTLD_LOCAL), and it sees its own before anybody else's (RTLD_DEEPBIND, where the platform has it). So Ruby loads
 * only this file, and this file loads the engine. It knows nothing about profiling.
 *
 * Nothing here raises because of the library: every failure is an answer, [:error, "what is wrong"].
 */
#include <dlfcn.h>
#include <ruby.h>

/* AddressSanitizer refuses libraries opened with RTLD_DEEPBIND. */
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

#if defined(RTLD_DEEPBIND) && !defined(UNDER_ASAN)
#define OPEN_FLAGS (RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND)
#else
#define OPEN_FLAGS (RTLD_LAZY | RTLD_LOCAL)
#endif

typedef void (*init_function)(void);

static VALUE success(void) {
  return rb_ary_new_from_args(2, ID2SYM(rb_intern("ok")), Qnil);
}

static VALUE failure(VALUE details) {
  return rb_ary_new_from_args(2, ID2SYM(rb_intern("error")), details);
}

static VALUE last_dl_error(void) {
  const char *message = dlerror();
  return rb_str_new_cstr(message ? message : "the dynamic linker gave no reason");
}

/* dlsym answers an object pointer; C has no cast from that to a function, only POSIX's promise that the bytes are
 * right. */
static init_function as_function(void *symbol) {
  union {
    void *symbol;
    init_function function;
  } view = {.symbol = symbol};
  return view.function;
}

/* Whether the library would use the libruby that runs us. A process can hold two (a program that embeds one, started by
 * another), and memory of one freed by the other is a crash. A library without a libruby of its own takes the one that
 * is there: where Ruby is linked statically, dlsym finds nothing through the handle. */
static int uses_other_libruby(void *handle) {
  union {
    void *(*function)(size_t);
    void *symbol;
  } ours = {.function = ruby_xmalloc};
  void *theirs = dlsym(handle, "ruby_xmalloc");
  return theirs != NULL && theirs != ours.symbol;
}

static VALUE call_init(VALUE function_address) {
  ((init_function)NUM2ULL(function_address))();
  return Qnil;
}

/* The library's Init may raise. It stays open then: it may already have defined methods, which point into it. */
static VALUE run_init(init_function init) {
  int state = 0;
  rb_protect(call_init, ULL2NUM((uintptr_t)init), &state);
  if (state == 0) return success();
  VALUE error = rb_errinfo();
  rb_set_errinfo(Qnil);
  if (!RTEST(rb_obj_is_kind_of(error, rb_eStandardError)) && !RTEST(rb_obj_is_kind_of(error, rb_eScriptError))) {
    rb_exc_raise(error); /* an interrupt or the end of the thread: not ours to swallow */
  }
  return failure(rb_sprintf("its Init raised %" PRIsVALUE ": %" PRIsVALUE, rb_obj_class(error), error));
}

/* call-seq: Sonde::Loader.load(path, init_name) -> [:ok, nil] or [:error, details] */
static VALUE loader_load(VALUE self, VALUE path, VALUE init_name) {
  (void)self;
  FilePathValue(path);
  StringValueCStr(init_name);
  void *handle = dlopen(RSTRING_PTR(path), OPEN_FLAGS);
  if (handle == NULL) return failure(last_dl_error());
  if (uses_other_libruby(handle)) {
    dlclose(handle);
    return failure(rb_sprintf("%" PRIsVALUE " is linked to another libruby than the Ruby that runs", path));
  }
  void *init = dlsym(handle, StringValueCStr(init_name));
  if (init == NULL) {
    VALUE details = last_dl_error();
    dlclose(handle);
    return failure(details);
  }
  VALUE answer = run_init(as_function(init));
  RB_GC_GUARD(path);
  RB_GC_GUARD(init_name);
  return answer;
}

RUBY_FUNC_EXPORTED void Init_sonde_loader(void);

void Init_sonde_loader(void) {
  VALUE sonde = rb_define_module("Sonde");
  VALUE loader = rb_define_module_under(sonde, "Loader");
  rb_define_singleton_method(loader, "load", loader_load, 2);
}
