# frozen_string_literal: true

# What one sample of a known stack costs, against what it cannot do without: one bare rb_profile_frames of the same
# stack and two reads of clocks. Needs a build with SONDE_TESTING=1 (run.rb sees to that).
require "sonde"
require_relative "support/measure"

Testing = Sonde::Native::Testing
PARTS = %i[bench_sample bench_profile_frames bench_clocks].freeze

# The fastest of many short rounds of each, in turn, in nanoseconds for one: what disturbs a round only makes it slower.
def fastest(names, rounds, times)
  all = Array.new(rounds) { names.map { |name| Testing.public_send(name, times) } }
  all.transpose.map { |nanoseconds| nanoseconds.min / times.to_f }
end

def measure(depth)
  rounds = Measure.full_or_short(1000, 20)
  Measure.at_depth(depth) do
    sample, walk, clocks = fastest(PARTS, rounds, (20_000 / depth).clamp(20, 200))
    puts format("  %5d   %9.0f ns   %9.0f ns   %7.0f ns   %7.2f", depth, sample, walk, clocks, sample / (walk + clocks))
  end
end

Measure.heading("One sample (frames below the benchmark's own)")
puts "  depth      sample        bare walk        clocks     ratio"
window = Sonde::Native.open_window(%i[cpu wall], 1, 16_000, 64 << 20)
[10, 100, 1000].each { |depth| measure(depth) }
window.close
