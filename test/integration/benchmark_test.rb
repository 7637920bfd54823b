# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "rbconfig"

# Each benchmark in its short form: that it runs and prints its figures. How good they are is not judged here.
class BenchmarkTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
    skip "once is enough: it ran outside of the chroot" if ENV["SONDE_TEST_MATRIX"] == "inside"
  end

  def test_sample_cost
    lines = benchmark("sample_cost")
    assert_equal 3, lines.grep(/\A +10*   +\d+ ns +\d+ ns +\d+ ns +\d+\.\d\d\Z/).size, lines.join
  end

  def test_startup
    lines = benchmark("startup")
    assert_equal 1, lines.grep(/\A  Sonde\.start +\d+\.\d\d +\d+\.\d\d\Z/).size, lines.join
  end

  def test_idle_threads
    skip "valgrind is not installed" unless system("valgrind", "--version", out: File::NULL, err: File::NULL)
    lines = benchmark("idle_threads")
    assert_equal 1, lines.grep(/\A +\d+ +\d+ +\d+\.\d\Z/).size, lines.join
  end

  def test_large_profile
    lines = benchmark("large_profile")
    assert_equal 1, lines.grep(/\A  encode .* MB \(20\d\d samples\)\Z/).size, lines.join
  end

  def test_overhead
    lines = benchmark("overhead")
    assert_equal 3, lines.grep(/\A  (loop|requests|queues) +\d\.\d{4} \+- \d\.\d{4} +\d+\.\d\d %\Z/).size, lines.join
  end

  def test_alloc
    lines = benchmark("alloc")
    assert_equal 3, lines.grep(/\A  (objects|json|requests) +\d\.\d{4} \+- \d\.\d{4} .* ns\Z/).size, lines.join
  end

  def test_weights
    lines = run_program("weights.rb")
    assert_equal 4, lines.grep(/\A  (uniform|Poisson), .* +\d+\.\d\d \+- \d\.\d\d +\d\.\d\d\Z/).size, lines.join
  end

  private

  def benchmark(name)
    run_program("run.rb", name)
  end

  def run_program(file, *arguments)
    program = File.join(ROOT, "benchmark", file)
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, program, "--short", *arguments)
    assert status.success?, out
    out.lines
  end
end
