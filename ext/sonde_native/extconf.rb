# frozen_string_literal: true

require_relative "../extconf_support"

# The folders of the extension, from the inside out (see ARCHITECTURE.md). mkmf compiles what lies in them when their
# base names are in $srcs and the folders in $VPATH; objects land in one place, so base names are unique in the whole
# extension.
FOLDERS = %w[core os record vm collect binding].freeze

ExtconfSupport.build("sonde_native") do
  ExtconfSupport.common_flags

  # lib<name> holds these on older C libraries; newer ones have them in libc.
  have_library("dl", "dladdr", "dlfcn.h")
  have_library("rt", "clock_gettime", "time.h")
  have_library("pthread", "pthread_create", "pthread.h")

  # Copying our own memory through the kernel, so that a bad address is an error and not a crash.
  have_header("sys/uio.h")
  have_func("process_vm_readv", "sys/uio.h")

  # What this Ruby offers to an extension. vm/vm_features.h turns these into facts with a reason.
  ruby_debug = ["ruby.h", "ruby/debug.h"]
  ruby_thread = ["ruby.h", "ruby/thread.h"]
  have_func("rb_postponed_job_preregister", ruby_debug)        # 3.3
  have_func("rb_profile_thread_frames", ruby_debug)            # 3.3
  have_func("rb_internal_thread_add_event_hook", ruby_thread)  # 3.2
  have_func("rb_internal_thread_specific_get", ruby_thread)    # 3.3
  have_func("rb_thread_lock_native_thread", ruby_thread)       # 3.3

  create_header
  sources = FOLDERS.flat_map { |folder| Dir[File.join($srcdir, folder, "*.c")].sort }
  sources << File.join($srcdir, "extension.c")
  $srcs = sources.map { |path| File.basename(path) }
  twice = $srcs.select { |name| $srcs.count(name) > 1 }.uniq
  raise "two files of one name: #{twice.join(", ")}" unless twice.empty?

  $VPATH.concat(FOLDERS.map { |folder| "$(srcdir)/#{folder}" })
  $INCFLAGS = "-I$(srcdir) #{$INCFLAGS}"
  ExtconfSupport.strict_flags
  create_makefile("sonde/sonde_native.#{ExtconfSupport::TAG}")
end
