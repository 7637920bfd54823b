# frozen_string_literal: true

# Runs one test file for suite.rb, which wants to know afterwards what passed, failed and was skipped, and why:
#   ruby tally.rb TALLY_FILE TEST_FILE
# Nothing is written where the process dies before its end.
require "json"
require "minitest"

class TallyReporter < Minitest::AbstractReporter
  def initialize(path)
    super()
    @path = path
    @passed = 0
    @skips = []
    @failures = []
  end

  def record(result)
    name = "#{result.class_name}##{result.name}"
    if result.skipped? then @skips << [name, result.failure.message]
    elsif result.passed? then @passed += 1
    else @failures << [name, result.failures.map(&:message).join(" | ")]
    end
  end

  def report
    File.write(@path, JSON.generate("passed" => @passed, "failures" => @failures, "skips" => @skips))
  end
end

tally = ARGV.shift
file = ARGV.shift
Minitest.define_singleton_method(:plugin_tally_init) { |_options| reporter << TallyReporter.new(tally) }
Minitest.extensions << "tally"
require "minitest/autorun"
require File.expand_path(file)
