# frozen_string_literal: true

# What one sample of a known stack costs, against what it cannot do without: one bare rb_profile_frames of the same stack and
# two reads of clocks. Needs a build with SONDE_TESTING=1 (run.rb sees to that).
require "sonde"
require_relative "support/measure"

Testing = Sonde::Native::Testing

# The fastest of many rounds, in nanoseconds for one: what disturbs a round only makes it slower.
def fastest(rounds, times)
  Array.new(rounds) { yield(times) }.min / times.to_f
end

def measure(depth)
  rounds = Measure.full_or_short(40, 5)
  times = [Measure.full_or_short(400_000, 40_000) / depth, 20].max
  Measure.at_depth(depth) do
    sample = fastest(rounds, times) { |n| Testing.bench_sample(n) }
    walk = fastest(rounds, times) { |n| Testing.bench_profile_frames(n) }
    clocks = fastest(rounds, times) { |n| Testing.bench_clocks(n) }
    puts format("  %5d   %9.0f ns   %9.0f ns   %7.0f ns   %7.2f", depth, sample, walk, clocks, sample / (walk + clocks))
  end
end

Measure.heading("One sample (frames below the benchmark's own)")
puts "  depth      sample        bare walk        clocks     ratio"
window = Sonde::Native.open_window(%i[cpu wall], 1, 16_000, 64 << 20)
[10, 100, 1000].each { |depth| measure(depth) }
window.close
