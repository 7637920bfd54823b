# frozen_string_literal: true

# A simulation, without Sonde: which part of short bursts of work gets how much CPU, by the way in which samples are
# weighted and the gaps between instants are drawn. docs/internals/statistics.md says what follows from it.
require_relative "support/measure"

BURST = 2.0 # milliseconds
RUNS = Measure.full_or_short(200, 5)
LENGTH = Measure.full_or_short(100_000.0, 10_000.0)
GAPS = { "uniform, 5 to 15 ms" => ->(random) { 5 + 10 * random.rand },
         "Poisson, mean 10 ms" => ->(random) { -10 * Math.log(1 - random.rand) } }.freeze

# One run: the share of the first half of the bursts, [by CPU since the last sample, by the gap between instants].
class Run
  def initialize(random, draw, pause)
    @random = random
    @draw = draw
    @pause = pause
    @since_last = [0.0, 0.0]
    @gaps = [0.0, 0.0]
  end

  def shares
    simulate
    [@since_last, @gaps].map { |first, second| 100 * first / (first + second) }
  end

  private

  def simulate
    from = to = cpu = unbooked_from = last = instant = 0.0
    while instant < LENGTH
      instant = last + @draw.call(@random)
      while to < instant
        from = to - @pause * Math.log(1 - @random.rand)
        cpu += BURST
        to = from + BURST
      end
      book(instant, from, cpu, unbooked_from, instant - last) { |now| unbooked_from = now }
      last = instant
    end
  end

  # cpu: what all bursts up to the end of this one use.
  def book(instant, from, cpu, unbooked_from, gap)
    return if instant < from

    half = instant - from < BURST / 2 ? 0 : 1
    now = cpu - BURST + (instant - from)
    @since_last[half] += now - unbooked_from
    @gaps[half] += gap
    yield now
  end
end

def show(name, weights, shares)
  centre = Measure.mean(shares)
  spread = Math.sqrt(Measure.mean(shares.map { |share| (share - centre)**2 }))
  margin = 1.96 * spread / Math.sqrt(shares.size)
  puts format("  %-20s  %-26s  %6.2f +- %.2f      %5.2f", name, weights, centre, margin, spread)
end

Measure.heading("Bursts of 2 ms after pauses of 8 ms on average: share of their first half (truth: 50 %)")
seconds = (LENGTH / 1000).round
puts "  gaps                  weight                      mean (95 %)         standard error of one run of #{seconds} s"
random = Random.new(1)
GAPS.each do |name, draw|
  runs = Array.new(RUNS) { Run.new(random, draw, 8.0).shares }
  show(name, "CPU since the last sample", runs.map(&:first))
  show(name, "gap between instants", runs.map(&:last))
end
