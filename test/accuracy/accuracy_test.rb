# frozen_string_literal: true

require "minitest/autorun"
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "sonde"
require_relative "all"

# Each workload once in its short form (2 s a run; SONDE_ACCURACY_SECONDS changes that), judged as run.rb does.
class AccuracyTest < Minitest::Test
  SECONDS = Float(ENV["SONDE_ACCURACY_SECONDS"] || 2)

  Accuracy::Workload.all.each do |workload|
    define_method("test_#{workload.id}") do
      unless Sonde.supported?
        flunk "the extension is required here: #{Sonde.unsupported_reason}" if ENV["SONDE_REQUIRE_EXTENSION"]
        skip "Sonde is not supported here: #{Sonde.unsupported_reason}"
      end
      skip workload.unavailable if workload.unavailable

      judge = Accuracy::Judge.new(workload, seconds: SECONDS).run
      assert judge.right?, -> { [workload.title, *Accuracy.table(judge.rows)].join("\n") }
    end
  end
end
