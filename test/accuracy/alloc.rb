# frozen_string_literal: true

# Allocation profiles against known truth, in seeded runs.
#
#   ruby test/accuracy/alloc.rb [--runs 40] [--seconds 2] [--only uniform,bursts] [--by-count] [--list]
#
# Each load knows how many objects, and how many bytes by the VM's own measure, each of its sites made. A run is right
# about a site if the share is within 1.96 of the standard errors that the profile itself states. Over many runs at
# least 95 % must be (less three standard errors of that count), and the mean must be within 1 point of the truth (or
# within three standard errors of the mean of the runs, where they vary by more than that).
$LOAD_PATH.push(File.expand_path("../../lib", __dir__)) # -I comes first: a build with SONDE_TESTING, say
require "sonde"
require_relative "alloc_loads"

module AllocAccuracy
  # The shares of one site in several runs.
  Site = Struct.new(:name, :type, :errors, :stated, :truths) do
    def add(truth, seen, stated_error)
      truths << truth * 100
      errors << (seen - truth) * 100
      stated << stated_error * 100
    end

    def runs
      errors.size
    end

    def mean
      errors.sum / runs
    end

    def deviation
      return Float::NAN if runs < 2

      Math.sqrt(errors.sum { |error| (error - mean)**2 } / (runs - 1))
    end

    def inside
      errors.zip(stated).count { |error, limit| error.abs <= 1.96 * limit }
    end

    def right?
      unbiased? && inside >= 0.95 * runs - 3 * Math.sqrt(0.05 * 0.95 * runs)
    end

    def unbiased?
      allowed = runs > 1 ? [1.0, 3 * deviation / Math.sqrt(runs)].max : Float::INFINITY
      mean.abs <= allowed
    end

    def to_s
      format("  %-22s %-13s truth %6.2f %%  mean error %+6.2f  sd %5.2f  stated %5.2f  inside %3d of %3d  %s",
             name, type, truths.sum / runs, mean, deviation, stated.sum / runs, inside, runs, right? ? "" : "WRONG")
    end
  end

  # Several runs of one load.
  class Trial
    attr_reader :sites, :uncalibrated

    def initialize(load_class, seconds)
      @load_class = load_class
      @seconds = seconds
      @sites = {}
      @uncalibrated = []
    end

    def run(seed)
      load = @load_class.new(Random.new(seed))
      profile = Sonde.profile(modes: %i[alloc]) { load.run(@seconds) }
      load.finish
      judge(load.truth, profile)
      @uncalibrated << ratio(profile)
    end

    def right?
      sites.each_value.all?(&:right?)
    end

    private

    def judge(truth, profile)
      %w[alloc-samples alloc-size].each_with_index do |type, position|
        seen = Hash.new(0)
        profile.top(by: type, limit: 10_000, cumulative: true).each { |entry| seen[entry.name] += entry.cumulative }
        add(truth, seen, position, type, profile)
      end
    end

    # Shares among the sites, so that what the loop around them allocates does not matter.
    def add(truth, seen, position, type, profile)
      return if truth.each_value.any? { |amounts| amounts[position].nil? } # not known

      all = truth.sum { |_, amounts| amounts[position] }.to_f
      found = truth.sum { |name, _| seen[name] }.to_f
      truth.each do |name, amounts|
        share = amounts[position] / all
        site = (@sites[[name, type]] ||= Site.new(name, type, [], [], []))
        site.add(share, found.zero? ? 0.0 : seen[name] / found, profile.standard_error(share, by: type) || 0.0)
      end
    end

    def ratio(profile)
      comment = profile.comments.find { |text| text.start_with?("alloc:") }
      counted, estimated = comment[/(\d+) objects counted/, 1].to_f, comment[/(\d+) estimated/, 1].to_f
      estimated / counted
    end
  end
end

if $PROGRAM_NAME == __FILE__
  require "optparse"
  options = { runs: 40, seconds: 2.0, only: nil }
  OptionParser.new do |parser|
    parser.on("--runs N", Integer) { |value| options[:runs] = value }
    parser.on("--seconds S", Float) { |value| options[:seconds] = value }
    parser.on("--only NAMES", Array) { |value| options[:only] = value }
    parser.on("--by-count", "as beside compiled code (needs a build with SONDE_TESTING)") do
      Sonde::Native::Testing.allocations_by_count = true
    end
    parser.on("--list") { puts(AllocAccuracy::LOADS.keys) || exit }
  end.parse!
  abort "Sonde does not work here: #{Sonde.unsupported_reason}" unless Sonde.supported?

  puts "#{RUBY_DESCRIPTION}, #{options[:runs]} runs of #{options[:seconds]} s"
  wrong = AllocAccuracy::LOADS.reject do |name, load_class|
    next true if options[:only] && !options[:only].include?(name)

    trial = AllocAccuracy::Trial.new(load_class, options[:seconds])
    options[:runs].times { |run| trial.run(1000 + run) }
    mean = trial.uncalibrated.sum / trial.uncalibrated.size
    puts "#{name}: #{load_class::TITLE}; before scaling #{format("%.0f", mean * 100)} % of the objects were found"
    puts trial.sites.values.map(&:to_s)
    trial.right?
  end
  puts wrong.empty? ? "all right" : "wrong: #{wrong.map(&:first).join(", ")}"
  exit(wrong.empty? ? 0 : 1)
end
