# frozen_string_literal: true

# What allocation profiling costs: work done per CPU second with it and without, in alternating runs of one process, and
# what it says of itself.
#
#   alloc.rb [--short] [LOAD...]
require "sonde"
require_relative "support/measure"
require_relative "support/alloc_loads"

SECONDS = Measure.full_or_short(0.5, 0.1)
PAIRS = Measure.full_or_short(40, 3)

# [speed, what the status says of allocations]
def speed_with_sonde(load)
  Sonde.start(modes: %i[alloc])
  result = Measure.speed(load, SECONDS)
  seen = Sonde.status[:allocations]
  Sonde.stop
  [result, seen]
end

Measure.heading("Allocations: work per CPU second, with / without (#{PAIRS} pairs of #{SECONDS} s; 95 % interval)")
puts "  load                  ratio                median   windows/s  objects a window   hook"
chosen = AllocLoads::ALL.select { |name, _| ARGV.empty? || ARGV.include?(name) }
chosen.each do |name, klass|
  load = klass.new
  load.run(SECONDS)
  pairs = Array.new(PAIRS) { |number| Measure.pair(number, load, SECONDS) { speed_with_sonde(load) } }
  ratios = pairs.map { |without, with, _| with / without }
  seen = pairs.map(&:last)
  windows = seen.sum { |status| status[:alloc_windows] }
  objects = seen.sum { |status| status[:objects_seen] }
  puts format("  %-16s %9.4f +- %.4f   %9.4f  %9.0f  %16.0f  %5.1f ns", name, Measure.mean(ratios),
              Measure.margin(ratios), Measure.median(ratios), windows / (PAIRS * SECONDS),
              objects.fdiv([windows, 1].max), seen.last[:hook_ns])
end
