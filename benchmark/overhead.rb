# frozen_string_literal: true

# Work done per CPU second with Sonde and without, in alternating runs of one process, and Sonde's own account of its
# cost.
#
#   overhead.rb [--short] [LOAD...]
require "sonde"
require_relative "support/measure"
require_relative "support/loads"

SECONDS = Measure.full_or_short(0.5, 0.05)
PAIRS = Measure.full_or_short(40, 3)

# [speed, what Sonde says it used, as a share of the CPU of the run]
def speed_with_sonde(load)
  Sonde.start
  cpu = Measure.process_cpu
  result = Measure.speed(load, SECONDS)
  # The worker's own clock is read at its end, so this is asked after it.
  used = Measure.process_cpu - cpu
  Sonde.stop
  [result, Sonde.status[:own_cpu_ns] / 1e9 / used]
end

Measure.heading("Overhead: work per CPU second, with Sonde / without (#{PAIRS} pairs of #{SECONDS} s; 95 % interval)")
puts "  load                       ratio                own share of the CPU"
chosen = Loads::ALL.select { |name, _| ARGV.empty? || ARGV.include?(name) }
chosen.each do |name, klass|
  load = klass.new
  load.run(SECONDS)
  pairs = Array.new(PAIRS) { |number| Measure.pair(number, load, SECONDS) { speed_with_sonde(load) } }
  ratios = pairs.map { |without, with, _| with / without }
  puts format("  %-20s %9.4f +- %.4f      %9.2f %%", name, Measure.mean(ratios), Measure.margin(ratios),
              Measure.mean(pairs.map(&:last)) * 100)
  load.finish
end
