# frozen_string_literal: true

require "minitest/autorun"
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "sonde"
require "open3"
require_relative "all"
require_relative "conditions"

# Each workload once in its short form (2 s a run; SONDE_ACCURACY_SECONDS changes that), judged as run.rb does; those
# for which it matters that code is compiled also under YJIT, where this Ruby has it. `rake accuracy` is the full form.
class AccuracyTest < Minitest::Test
  SECONDS = Float(ENV["SONDE_ACCURACY_SECONDS"] || 2)

  # C functions, which compiled code has left at its next safepoint; and methods that call nothing.
  UNDER_YJIT = %w[c_functions split].freeze

  def setup
    return if Sonde.supported?

    flunk "the extension is required here: #{Sonde.unsupported_reason}" if ENV["SONDE_REQUIRE_EXTENSION"]
    skip "Sonde is not supported here: #{Sonde.unsupported_reason}"
  end

  UNDER_YJIT.each do |id|
    define_method("test_#{id}_under_yjit") do
      skip "this Ruby has no YJIT" unless Accuracy::Conditions.yjit?
      skip "it is on for all" if Accuracy::Conditions.yjit_enabled?

      program = File.join(__dir__, "run.rb")
      out, status = Open3.capture2e(RbConfig.ruby, "-w", program, "--yjit", "--only", id, "--seconds", SECONDS.to_s)
      assert status.success?, out
      assert_match(/\+YJIT/, out)
    end
  end

  Accuracy::Workload.all.each do |workload|
    define_method("test_#{workload.id}") do
      skip workload.unavailable if workload.unavailable

      judge = Accuracy::Judge.new(workload, seconds: SECONDS).run
      assert judge.right?, -> { [workload.title, *Accuracy.table(judge.rows)].join("\n") }
    end
  end
end
