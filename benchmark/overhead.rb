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

# Units of work for each CPU second of the whole process, Sonde's own thread included.
def speed(load)
  cpu = Measure.process_cpu
  done = load.run(SECONDS)
  done / (Measure.process_cpu - cpu)
end

# [speed, what Sonde says it used, as a share of the CPU of the run]
def speed_with_sonde(load)
  Sonde.start
  cpu = Measure.process_cpu
  result = speed(load)
  # The worker's own clock is read at its end, so this is asked after it.
  used = Measure.process_cpu - cpu
  Sonde.stop
  [result, Sonde.status[:own_cpu_ns] / 1e9 / used]
end

# Without first in one pair, with first in the next: what drifts is then in both.
def pair(load, number)
  return [speed(load), *speed_with_sonde(load)] if number.even?

  with, share = speed_with_sonde(load)
  [speed(load), with, share]
end

Measure.heading("Overhead: work per CPU second, with Sonde / without (#{PAIRS} pairs of #{SECONDS} s; 95 % interval)")
puts "  load                       ratio                own share of the CPU"
chosen = Loads::ALL.select { |name, _| ARGV.empty? || ARGV.include?(name) }
chosen.each do |name, klass|
  load = klass.new
  load.run(SECONDS)
  pairs = Array.new(PAIRS) { |number| pair(load, number) }
  ratios = pairs.map { |without, with, _| with / without }
  puts format("  %-20s %9.4f +- %.4f      %9.2f %%", name, Measure.mean(ratios), Measure.margin(ratios),
              Measure.mean(pairs.map(&:last)) * 100)
  load.finish
end
