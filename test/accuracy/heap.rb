# frozen_string_literal: true

# Heap profiles against known truth.
#
#   ruby test/accuracy/heap.rb [--runs 10] [--seconds 4]
#
# One site leaks: it keeps exactly N objects of S bytes. Another one makes ten times as many and drops them at once. At
# the end there must be N and N * S of the first one, within 5 % or 1.96 of the standard errors that the profile
# states (in at least 95 % of the runs, less three standard errors of that count), and next to nothing of the second.
# Then all is dropped and collected: next to nothing must be left. And the mean must be within 1.5 % of the truth, or
# three standard errors of the mean of the runs.
$LOAD_PATH.push(File.expand_path("../../lib", __dir__)) # -I comes first
require "objspace"
require "sonde"

module HeapAccuracy
  X = "x"
  SITES = %w[HeapAccuracy.leak HeapAccuracy.churn].freeze

  module_function

  def leak
    X * 1000
  end

  def churn
    X * 100
  end

  def work(seconds, kept, random)
    finish = now + seconds
    while now < finish
      100.times do
        drawn = random.rand(11)
        drawn.zero? ? kept << leak : churn
      end
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Of a flush after two collections: what lives has surely seen one.
  def picture
    2.times { GC.start }
    profile = yield
    values = %w[heap-live-samples heap-live-size].map do |type|
      seen = Hash.new(0)
      profile.top(by: type, limit: 10_000, cumulative: true).each { |entry| seen[entry.name] += entry.cumulative }
      total = profile.totals[type]
      SITES.map { |name| [seen[name], total] }
    end
    [profile, values]
  end

  # Errors of what was seen, and stated ones (objects, bytes); churn and what is left, all over what there was.
  def run(seed, seconds)
    kept = []
    Sonde.start(modes: %i[heap])
    work(seconds, kept, Random.new(seed))
    profile, values = picture { Sonde.flush }
    truth = [kept.size, kept.size * ObjectSpace.memsize_of(kept[0])]
    judged = %w[heap-live-samples heap-live-size].each_with_index.map do |type, i|
      seen, total = values[i][0]
      stated = total.zero? ? 0.0 : profile.standard_error(seen.fdiv(total), by: type) * total
      { type: type, error: seen.fdiv(truth[i]) - 1, stated: stated / truth[i] }
    end
    kept.clear
    work(0.1, [], Random.new(seed)) # whose own leak is dropped, too
    _, after = picture { Sonde.stop }
    [judged, values[0][1][0].fdiv(truth[0]), after[0][0][0].fdiv(truth[0])]
  end
end

if $PROGRAM_NAME == __FILE__
  require "optparse"
  options = { runs: 10, seconds: 4.0 }
  OptionParser.new do |parser|
    parser.on("--runs N", Integer) { |value| options[:runs] = value }
    parser.on("--seconds S", Float) { |value| options[:seconds] = value }
  end.parse!
  refusal = Sonde.supported? ? Sonde::Native.features["living objects (mode heap)"] : Sonde.unsupported_reason
  abort "There are no heap profiles here: #{refusal}" if refusal

  puts "#{RUBY_DESCRIPTION}, #{options[:runs]} runs of #{options[:seconds]} s"
  runs = Array.new(options[:runs]) { |run| HeapAccuracy.run(1000 + run, options[:seconds]) }
  wrong = false
  %w[heap-live-samples heap-live-size].each_with_index do |type, i|
    sites = runs.map { |judged, _, _| judged[i] }
    errors = sites.map { |site| site[:error] }
    mean = errors.sum / errors.size
    deviation = Math.sqrt(errors.sum { |error| (error - mean)**2 } / [errors.size - 1, 1].max)
    inside = sites.count { |site| site[:error].abs <= [0.05, 1.96 * site[:stated]].max }
    enough = inside >= 0.95 * errors.size - 3 * Math.sqrt(0.05 * 0.95 * errors.size)
    right = enough && (errors.size < 2 || mean.abs <= [0.015, 3 * deviation / Math.sqrt(errors.size)].max)
    wrong ||= !right
    puts format("  leak   %-18s mean error %+6.2f %%  sd %5.2f  stated %5.2f  inside %3d of %3d  %s", type, mean * 100,
                deviation * 100, sites.sum { |site| site[:stated] } / sites.size * 100, inside, errors.size,
                right ? "" : "WRONG")
  end
  churned, left = runs.map { |run| run[1] }.max, runs.map { |run| run[2] }.max
  wrong ||= churned > 0.05 || left > 0.05
  puts format("  churn %.2f %% of the leak at most, %.2f %% of it left after it was dropped", churned * 100, left * 100)
  puts wrong ? "wrong" : "all right"
  exit(wrong ? 1 : 0)
end
