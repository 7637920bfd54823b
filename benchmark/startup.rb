# frozen_string_literal: true

# How long require "sonde", Sonde.start and Sonde.stop take, in fresh processes.
require "rbconfig"
require_relative "support/measure"

PROGRAM = <<~RUBY
  clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) * 1000 }
  times = [clock.call]
  require "sonde"
  abort Sonde.unsupported_reason unless Sonde.supported?
  times << clock.call
  Sonde.start
  times << clock.call
  Sonde.stop
  times << clock.call
  puts times.each_cons(2).map { |from, to| to - from }.join(" ")
RUBY

runs = Array.new(Measure.full_or_short(31, 3)) do
  IO.popen([RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-e", PROGRAM], &:read).split.map(&:to_f)
end
abort "the program failed" unless runs.all? { |times| times.size == 3 }
Measure.heading("Start, in fresh processes (milliseconds: median, slowest of #{runs.size})")
["require \"sonde\"", "Sonde.start", "Sonde.stop"].zip(runs.transpose) do |name, times|
  puts format("  %-18s %6.2f  %6.2f", name, Measure.median(times), times.max)
end
