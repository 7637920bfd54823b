# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "open3"
require "rbconfig"
require_relative "../support/testing_build"

# The note of the top frame at the instant, where jobs come after the C function has returned. Compiled code does that;
# a build for testing does it on every Ruby (see vm_events.h). Bounds are wide: a busy machine often takes the CPU from
# the program just where it makes a system call.
class LeafPeekTest < Minitest::Test
  include TestHelper

  RIGHT = ["Array#sort < LeafPeek.sorts", "Integer#pow < LeafPeek.powers"].freeze
  C_FUNCTION = /\A(?:Array#sort|Integer#pow) </.freeze

  def setup
    need_extension
    reason = Sonde::Native.features["top frame at an instant"]
    skip "off here: #{reason}" if reason
  end

  def test_jobs_that_come_in_time_need_no_note
    result = profile(0, peek: false)
    assert_operator share(result) { |pair| RIGHT.include?(pair) }, :>, 0.8, result.to_s
    assert_equal 0, result["status"]["peeked"]
  end

  # Without this, the next test would not show anything.
  def test_jobs_that_come_later_find_the_caller
    result = profile(1, peek: false)
    assert_operator share(result) { |pair| C_FUNCTION.match?(pair) }, :<, 0.05, result.to_s
  end

  def test_the_note_puts_the_c_function_back
    result = profile(1, peek: true)
    assert_operator share(result) { |pair| RIGHT.include?(pair) }, :>, 0.7, result.to_s
    status = result["status"]
    assert_operator status["peek_added"] * 2, :>, status["peeked"], result.to_s
    assert_empty misplaced(result), result.to_s
  end

  # By then the caller has gone too, and others stand where it stood.
  def test_a_note_that_does_not_match_is_not_used
    result = profile(2, peek: true)
    assert_operator share(result) { |pair| C_FUNCTION.match?(pair) }, :<, 0.2, result.to_s
    status = result["status"]
    assert_operator status["peek_gone"] * 2, :>, status["peeked"], result.to_s
    assert_empty misplaced(result), result.to_s
  end

  private

  def profile(returns, peek:)
    program = File.join(ROOT, "test/support/leaf_peek.rb")
    command = [RbConfig.ruby, "-w", "-I#{TestingBuild.library}", program, returns.to_s, peek ? "on" : "off"]
    out, err, status = Open3.capture3(clean_environment, *command)
    assert status.success?, err
    assert_empty err
    result = JSON.parse(out)
    assert_operator result["pairs"].values.sum, :>, 800_000_000, "hardly any CPU was seen: #{result}"
    result
  end

  def share(result, &condition)
    pairs = result["pairs"]
    pairs.select { |pair, _| condition.call(pair) }.values.sum.fdiv(pairs.values.sum)
  end

  def misplaced(result)
    result["pairs"].keys.grep(C_FUNCTION) - RIGHT
  end
end
