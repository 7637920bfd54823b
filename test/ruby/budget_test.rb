# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"

# How much of a CPU Sonde may use, and what becomes of the rate.
class BudgetTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def open_with_budget(budget)
    Sonde::Native.open_window(%i[cpu wall], 1000.0, 2000, 0, budget)
  end

  def test_a_budget_that_is_too_small_for_the_rate_is_kept_and_that_is_said
    window = open_with_budget(0.0002)
    finish = now + 30_000_000_000
    burn(0.05) until Sonde.status[:effective_rate] < 500 || now > finish
    burn(0.3)
    status = Sonde.status
    assert_operator status[:effective_rate], :<, 500
    assert_operator status[:stretched], :>, 0
    assert_equal 0.0002, status[:budget]
    profile = PprofDecoder.decode(window.close.encode)
    assert_match(/\Arate: \d+\.\d instants a second \(asked for: 1000\.0\), within a budget of 0\.02 % of one CPU\z/,
                 profile.comments.grep(/rate/).first)
  ensure
    window&.close
  end

  def test_the_largest_budget_of_all_windows_holds
    small = open_with_budget(0.001)
    large = open_with_budget(1.0)
    assert_equal 1.0, Sonde.status[:budget]
    burn(0.3)
    assert_in_delta 1000, Sonde.status[:effective_rate], 1
    large.close
    assert_equal 0.001, Sonde.status[:budget]
  ensure
    [small, large].each { |window| window&.close }
  end

  def test_what_delivering_costs_is_part_of_what_sonde_costs
    window = open_with_budget(1.0)
    before = Sonde.status
    Sonde::Native.count_delivery(7_000_000_000)
    after = Sonde.status
    assert_equal 7_000_000_000, after[:delivery_cpu_ns] - before[:delivery_cpu_ns]
    assert_operator after[:own_cpu_ns] - before[:own_cpu_ns], :>=, 7_000_000_000
    assert_raises(ArgumentError) { Sonde::Native.count_delivery(-1) }
  ensure
    window&.close
  end

  def test_a_profiler_that_stays_on_has_a_smaller_one_than_a_block
    Sonde.start
    assert_equal 0.005, Sonde.status[:budget]
    Sonde.profile { assert_equal 0.01, Sonde.status[:budget] }
    assert_equal 0.005, Sonde.status[:budget]
  ensure
    Sonde.stop
  end
end
