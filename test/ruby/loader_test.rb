# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# The loader, with tiny libraries compiled for the purpose.
class LoaderTest < Minitest::Test
  include TestHelper

  def setup
    skip "the loader was not built: #{Sonde::Native.reason}" unless defined?(Sonde::Loader)
    @compiler = ENV["CC"] || RbConfig::CONFIG["CC"]
    skip "no C compiler (#{@compiler})" unless system(*@compiler.split, "--version", out: File::NULL, err: File::NULL)
    @directory = Dir.mktmpdir("loader é")
  end

  def teardown
    FileUtils.rm_rf(@directory) if @directory
  end

  def test_a_missing_file
    assert_equal [:error, "/no/such/file.so: cannot open shared object file: No such file or directory"],
                 Sonde::Loader.load("/no/such/file.so", "Init_x")
  end

  def test_a_file_that_is_no_library
    path = File.join(@directory, "text.so")
    File.write(path, "this is no library\n" * 100)
    status, details = Sonde::Loader.load(path, "Init_x")
    assert_equal :error, status
    assert_match(/text\.so: (invalid ELF header|file too short|.*ELF)/, details)
  end

  def test_a_library_without_that_init_is_closed_again
    path = library("other", "void Init_other(void) {}")
    status, details = Sonde::Loader.load(path, "Init_missing")
    assert_equal :error, status
    assert_match(/Init_missing/, details)
    refute_mapped path
  end

  def test_a_library_that_uses_another_libruby_is_refused
    path = library("foreign", "void *ruby_xmalloc(unsigned long n) { (void)n; return 0; }\nvoid Init_foreign(void) {}")
    status, details = Sonde::Loader.load(path, "Init_foreign")
    assert_equal :error, status
    assert_match(/linked to another libruby/, details)
    refute_mapped path
  end

  def test_a_library_linked_to_another_libruby_is_refused
    other = library("libruby-other", "void *ruby_xmalloc(unsigned long n) { (void)n; return 0; }")
    path = library("linked", "void *ruby_xmalloc(unsigned long);\nvoid Init_linked(void) { ruby_xmalloc(1); }",
                   other, "-Wl,-rpath,#{@directory}")
    status, details = Sonde::Loader.load(path, "Init_linked")
    assert_equal [:error, true], [status, details.include?("linked to another libruby")], details
    refute_mapped path
  end

  def test_a_good_library_is_initialised
    path = library("good", <<~C)
      unsigned long rb_define_module(const char *name);
      void Init_good(void) { rb_define_module("SondeLoaderTestGood"); }
    C
    assert_equal [:ok, nil], Sonde::Loader.load(path, "Init_good")
    assert Object.const_defined?(:SondeLoaderTestGood)
  end

  def test_its_symbols_stay_its_own
    path = library("local", "int sonde_loader_test_symbol;\nvoid Init_local(void) {}")
    assert_equal [:ok, nil], Sonde::Loader.load(path, "Init_local")
    user = library("user", "extern int sonde_loader_test_symbol;\nvoid Init_user(void) { sonde_loader_test_symbol++; }")
    status, details = Sonde::Loader.load(user, "Init_user")
    assert_equal :error, status
    assert_match(/sonde_loader_test_symbol/, details)
  end

  def test_an_init_that_raises_is_an_answer
    path = library("raising", <<~C)
      extern unsigned long rb_eRuntimeError;
      void rb_raise(unsigned long, const char *, ...);
      void Init_raising(void) { rb_raise(rb_eRuntimeError, "not on this machine"); }
    C
    assert_equal [:error, "its Init raised RuntimeError: not on this machine"], Sonde::Loader.load(path, "Init_raising")
  end

  def test_wrong_arguments_raise
    assert_raises(TypeError) { Sonde::Loader.load(nil, "Init_x") }
    assert_raises(TypeError) { Sonde::Loader.load("/x", 1) }
    assert_raises(ArgumentError) { Sonde::Loader.load("/x\0y", "Init_x") }
    assert_raises(ArgumentError) { Sonde::Loader.load("/x", "Init\0x") }
  end

  private

  def library(name, source, *flags)
    path = File.join(@directory, "#{name}.so")
    File.write(File.join(@directory, "#{name}.c"), source)
    source = File.join(@directory, "#{name}.c")
    output, status = Open3.capture2e(*@compiler.split, "-shared", "-fPIC", "-o", path, source, *flags)
    assert status.success?, output
    path
  end

  def refute_mapped(path)
    return unless File.exist?("/proc/self/maps")

    refute_includes File.read("/proc/self/maps", encoding: "BINARY"), path.b
  end
end
