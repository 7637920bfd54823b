# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "open3"
require_relative "../support/testing_build"

# A program that leaks more than is followed: with a limit of 64 objects instead of 8,192 that takes half a second.
class HeapLimitTest < Minitest::Test
  include TestHelper

  LIMIT = 64
  PROGRAM = <<~'RUBY'
    require "json"
    require "sonde"
    def often
      "x" * 1000
    end
    def rarely
      "y" * 100
    end
    Sonde::Native::Testing.heap_limit = Integer(ARGV[0])
    kept = nil
    followed = []
    runs = Array.new(12) do
      kept = []
      Sonde.start(modes: %i[heap])
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.8
      while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
        20.times { kept << often << often << rarely if kept.size < 3_000_000 }
        followed << Sonde.status[:heap][:objects_followed] if rand(100).zero?
      end
      2.times { GC.start }
      profile = Sonde.flush
      taken = Sonde.status[:heap][:taken]
      Sonde.stop
      found = profile.top(by: "heap-live-samples", limit: 1000, cumulative: true)
                     .map { |entry| [entry.name, entry.cumulative] }.to_h
      total = profile.totals["heap-live-samples"]
      { truth: kept.size, often: found["Object#often"].to_i, rarely: found["Object#rarely"].to_i, taken: taken,
        stated: profile.standard_error(1.0, by: "heap-live-samples").to_f * total }
    end
    puts JSON.generate(runs: runs, followed: followed.max)
  RUBY

  def setup
    need_extension
    reason = Sonde::Native.features["living objects (mode heap)"]
    skip reason if reason
  end

  def test_memory_is_bounded_and_totals_stay_right
    out, error, status = Open3.capture3(clean_environment, RbConfig.ruby, "-W0", "-I#{TestingBuild.library}", "-e",
                                        PROGRAM, LIMIT.to_s)
    assert status.success?, out + error
    result = JSON.parse(out)
    runs = result["runs"]
    assert_operator result["followed"], :<=, LIMIT
    assert_operator result["followed"], :>, LIMIT / 2
    assert(runs.any? { |run| run["taken"] <= 0.25 }, "the limit was hardly ever reached: #{out}")

    ratios = runs.map { |run| (run["often"] + run["rarely"]).fdiv(run["truth"]) }
    stated = Math.sqrt(runs.sum { |run| run["stated"].fdiv(run["truth"])**2 }) / runs.size
    assert_in_delta 1.0, ratios.sum / ratios.size, 4 * stated + 0.02, out
    shares = runs.map { |run| run["often"].fdiv(run["often"] + run["rarely"]) }
    assert_in_delta 2.0 / 3, shares.sum / shares.size, 4 * stated * Math.sqrt(2) / 3 + 0.02, out
  end
end
