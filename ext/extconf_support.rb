# frozen_string_literal: true

require "rbconfig"

# Shared by the extconf.rb of both extensions. Its one promise: installing Sonde never fails because of the extension.
#
#  1. What is known beforehand (platform, headers, the user's wish) is checked before mkmf is loaded, which aborts by
#     itself.
#  2. mkmf writes its Makefile under another name (sonde.mk); ours calls it, and survives when it fails.
#  3. Whatever failed, a file with one sentence is installed in the place of the library:
#     <name>.<ruby>_<platform>.reason. lib/sonde/native.rb finds it there.
#
# SONDE_REQUIRE_EXTENSION=1 turns all of that off, for developers and CI: every failure is an error again.
module ExtconfSupport
  # Stale binaries are never loaded: the Ruby that each was built for is in its name.
  TAG = "#{RUBY_VERSION}_#{RUBY_PLATFORM}"
  BUILD_MAKEFILE = "sonde.mk"

  module_function

  # Runs the block, which uses mkmf to write the Makefile of extension `name`, unless there is a reason not to.
  def build(name)
    reason = unsupported_reason
    if reason.nil?
      begin
        require "mkmf"
        use_compiler_of_environment
        reason = compiler_problem
        yield if reason.nil?
      rescue StandardError, SystemExit => e
        raise if required?
        reason = "its build could not be prepared when the gem was installed (#{one_line(e.message)})"
      end
    end
    abort "sonde: #{name}: #{reason}" if reason && required?
    reason ? write_idle_makefile(name, reason) : wrap_makefile(name)
    warn_about_missing_make
  end

  def required?
    ENV["SONDE_REQUIRE_EXTENSION"] == "1"
  end

  # A reason that is known before anything is tried, or nil.
  def unsupported_reason
    if ENV["SONDE_NO_EXTENSION"] == "1"
      "SONDE_NO_EXTENSION=1 was set when the gem was installed; install it again without that variable"
    elsif RUBY_ENGINE != "ruby"
      "Sonde profiles MRI Ruby only, and this is #{RUBY_ENGINE}"
    elsif RUBY_PLATFORM =~ /mswin|mingw|cygwin/
      "Windows is not supported"
    elsif RUBY_PLATFORM =~ /darwin/
      "macOS is not supported yet"
    else
      missing_headers
    end
  end

  def missing_headers
    directory = RbConfig::CONFIG["rubyhdrdir"].to_s
    return if File.exist?(File.join(directory, "ruby.h"))

    "the headers of Ruby #{RUBY_VERSION} were missing when the gem was installed (no ruby.h in #{directory}); " \
      "install them (the package is often called ruby-dev or ruby-devel) and install the gem again"
  end

  # CC names another compiler, as it does for most things that are built from source.
  def use_compiler_of_environment
    return if ENV["CC"].to_s.empty?

    RbConfig::CONFIG["CC"] = RbConfig::MAKEFILE_CONFIG["CC"] = ENV["CC"]
  end

  def compiler_problem
    return if MakeMakefile.try_link("int main(void) { return 0; }\n")

    no_compiler
  rescue RuntimeError
    # mkmf raises where even an empty program cannot be built.
    no_compiler
  end

  def no_compiler
    "no working C compiler was found when the gem was installed (#{RbConfig::CONFIG["CC"]}); " \
      "install one (and make) and install the gem again"
  end

  # RubyGems runs make in any case, and fails without it: nothing that is written here can prevent that. So say it
  # clearly.
  def warn_about_missing_make
    program = (ENV["MAKE"] || ENV["make"] || "make").split.first.to_s
    directories = program.include?("/") ? [""] : ENV["PATH"].to_s.split(":").map { |path| "#{path}/" }
    return if directories.any? { |directory| File.executable?(directory + program) }

    warn "sonde: #{program} was not found. RubyGems cannot install a gem with an extension without make: install make."
  end

  # A Makefile that builds nothing and installs the reason.
  def write_idle_makefile(name, reason)
    write_reason(name, reason)
    warn "sonde: the extension is left out: #{reason}."
    File.write("Makefile", <<~MAKEFILE)
      #{header(name)}
      all:
      #{install_reason}
      clean:
      distclean realclean: clean
      .PHONY: all install clean distclean realclean
    MAKEFILE
  end

  # A Makefile that calls mkmf's, and installs a reason where that fails.
  def wrap_makefile(name)
    File.rename("Makefile", BUILD_MAKEFILE)
    reason = "its compilation failed when the gem was installed; the compiler's messages are in gem_make.out, " \
             "in the directory of the gem's extensions"
    write_reason(name, reason)
    failed = "{ echo 'sonde: the extension could not be compiled; the gem works without it.' >&2; touch failed; }"
    failed = "exit 1" if required?
    File.write("Makefile", <<~MAKEFILE)
      #{header(name)}
      all:
      \t@rm -f failed
      \t@$(MAKE) -f #{BUILD_MAKEFILE} all || #{failed}
      install: all
      \t@if [ -f failed ]; then $(MAKE) install-reason; else $(MAKE) -f #{BUILD_MAKEFILE} install; fi
      #{install_reason("install-reason")}
      clean:
      \t@rm -f failed
      \t@$(MAKE) -f #{BUILD_MAKEFILE} clean
      distclean realclean: clean
      .PHONY: all install install-reason clean distclean realclean
    MAKEFILE
  end

  def header(name)
    <<~MAKEFILE.chomp
      # Written by extconf.rb. make must not fail where a compiler does: see ext/extconf_support.rb.
      SHELL = /bin/sh
      DESTDIR =
      prefix = #{RbConfig::CONFIG["prefix"]}
      sitearchdir = #{RbConfig::CONFIG["sitearchdir"].to_s.gsub("$", "$$")}
      REASON = #{name}.#{TAG}.reason
    MAKEFILE
  end

  def install_reason(target = "install")
    <<~MAKEFILE.chomp
      #{target}:
      \t@mkdir -p "$(DESTDIR)$(sitearchdir)/sonde"
      \t@cp "$(REASON)" "$(DESTDIR)$(sitearchdir)/sonde/"
    MAKEFILE
  end

  def write_reason(name, reason)
    File.write("#{name}.#{TAG}.reason", "#{reason}\n")
  end

  def one_line(text)
    text.to_s.split("\n").map(&:strip).reject(&:empty?).first(2).join(" ")[0, 200]
  end

  # The flags both extensions share, for mkmf's feature checks as well.
  #
  # Ruby's own headers are made system headers: what a compiler thinks of them is not for us to mend, and with all its
  # warnings off for those directories we can have -Wextra for our own files.
  def common_flags
    $warnflags = "" # Ruby's own choice of warnings: other compilers may not know them
    $INCFLAGS = "#{$INCFLAGS} -isystem $(hdrdir) -isystem $(arch_hdrdir)"
    flags = %w[-std=gnu11 -fvisibility=hidden -Wall -Wextra
               -Werror=implicit-function-declaration -Werror=implicit-int -Werror=incompatible-pointer-types]
    flags.unshift("-O2") unless RbConfig.expand($CFLAGS.dup) =~ /(\A|\s)-O/
    $CFLAGS = "#{$CFLAGS} #{flags.join(" ")}"
    $defs.push("-DSONDE_TESTING") if ENV["SONDE_TESTING"] == "1" || enable_config("testing", false)
  end

  # After the feature checks, whose own code is not free of warnings.
  def strict_flags
    # For clang, which says this at each use of rb_intern as Ruby 2.7 defines it; gcc does not mind.
    $CFLAGS = "#{$CFLAGS} -Wno-compound-token-split-by-macro" if RUBY_VERSION < "3.0"
    $CFLAGS = "#{$CFLAGS} -Werror" if ENV["SONDE_WERROR"] == "1"
  end
end
