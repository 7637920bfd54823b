# frozen_string_literal: true

# The rules by which a run is right or wrong. README.md beside this file gives the reasons.
module Accuracy
  # Standard errors of the sample count within which a share must lie.
  STANDARD_ERRORS = 3.0
  # Points (of 100) granted beside the sampling error: what the workload's own clock reads and loops cost.
  ALLOWANCE = 0.3
  # All runs together must have so many samples: with fewer, hardly anything would be outside the limit.
  MINIMUM_SAMPLES = 40
  # Limit of the mean signed error over many runs, in points, for shares whose phases are long against the sampling
  # interval: their sampling error is far below the binomial one. For others it is the pooled limit.
  MEAN_ERROR = 0.6

  # A sampled share of CPU. n samples of a share p have a standard error of sqrt(p(1-p)/n). spread is 1 + the squared
  # coefficient of variation of the samples' weights: near 1 for a thread that is always busy (its samples weigh 5 to
  # 15 ms each), 2 for one that works in short bursts (the CPU between two samples is then exponential).
  Share = Struct.new(:name, :truth_part, :truth_whole, :seen_part, :seen_whole, :samples, :spread, :long_phases,
                     keyword_init: true) do
    def truth
      truth_whole.zero? ? Float::NAN : truth_part.fdiv(truth_whole)
    end

    def seen
      seen_whole.zero? ? Float::NAN : seen_part.fdiv(seen_whole)
    end

    # In points.
    def error
      (seen - truth) * 100
    end

    def standard_error
      100 * Math.sqrt(truth * (1 - truth) / samples)
    end

    def limit
      STANDARD_ERRORS * standard_error * Math.sqrt(spread) + ALLOWANCE
    end

    def inside?
      error.abs <= limit
    end

    def right?
      samples >= MINIMUM_SAMPLES && inside?
    end

    def self.pooled(list)
      sums = %i[truth_part truth_whole seen_part seen_whole samples].map { |field| [field, list.sum(&field)] }
      new(name: list.first.name, spread: list.first.spread, long_phases: list.first.long_phases, **sums.to_h)
    end

    # The first run inside the limit is enough. If it was outside, chance is tested with more runs: then a run and all
    # runs together (whose limit is narrower) must be inside.
    def self.verdict(list, tries)
      pool = block_given? ? yield(list) : pooled(list)
      return :right if list.last.inside? && pool.right?

      list.size < tries ? :again : :wrong
    end

    # Over many runs: no bias, and no more single outliers than chance gives (two of ten come up once in a thousand).
    def self.verdict_of_many(list)
      pool = pooled(list)
      mean = list.sum(&:error) / list.size
      outside = list.count { |share| !share.inside? }
      mean.abs <= (pool.long_phases ? MEAN_ERROR : pool.limit) && pool.right? && outside <= 1 ? :right : :wrong
    end

    def columns
      [format("%.2f %%", truth * 100), format("%.2f %%", seen * 100), format("%+.2f", error),
       format("%+.1f SE of %d", error / standard_error, samples)]
    end
  end

  # A share that must stay below a limit, whatever its truth is (unless the truth itself is above it: on a machine that
  # is busy with other things, waking up costs more). A short run can only tell with as much certainty as its samples
  # give.
  SampledLimit = Struct.new(:name, :truth_part, :truth_whole, :seen_part, :seen_whole, :samples, :spread, :below,
                            keyword_init: true) do
    def truth
      truth_part.fdiv(truth_whole)
    end

    def seen
      seen_whole.zero? ? Float::NAN : seen_part.fdiv(seen_whole)
    end

    def bound
      [below, truth].max
    end

    def error
      (seen - truth) * 100
    end

    def inside?
      seen <= bound + STANDARD_ERRORS * Math.sqrt(bound * (1 - bound) * spread / samples)
    end

    def right?
      samples >= MINIMUM_SAMPLES && inside?
    end

    def self.pooled(list)
      sums = %i[truth_part truth_whole seen_part seen_whole samples].map { |field| [field, list.sum(&field)] }
      new(name: list.first.name, spread: list.first.spread, below: list.first.below, **sums.to_h)
    end

    def self.verdict(list, tries)
      Share.verdict(list, tries) { |all| pooled(all) }
    end

    # Many runs have samples enough for the limit itself.
    def self.verdict_of_many(list)
      pool = pooled(list)
      pool.right? && pool.seen < pool.bound + ALLOWANCE / 100 ? :right : :wrong
    end

    def columns
      [format("%.2f %%", truth * 100), format("%.2f %%", seen * 100), format("%+.2f", error),
       format("< %.1f %%, of %d", bound * 100, samples)]
    end
  end

  # A quantity that is exact, not sampled. truth: a number, or the two numbers between which it must be; within:
  # relative.
  Exact = Struct.new(:name, :truth, :seen, :within, keyword_init: true) do
    def low
      truth.is_a?(Bracket) ? truth.to_a.min : truth
    end

    def high
      truth.is_a?(Bracket) ? truth.to_a.max : truth
    end

    def right?
      seen >= low * (1 - within) && seen <= high * (1 + within)
    end

    def error
      nearest = seen.clamp(low, high)
      nearest.zero? ? 0.0 : 100 * (seen - nearest).fdiv(nearest)
    end

    def columns
      [format("%.1f ms", low / 1e6), format("%.1f ms", seen / 1e6), format("%+.2f %%", error),
       format("within %.1f %%", within * 100)]
    end
  end

  # Something that must stay below (or, with at_least, above) a limit; both in per cent.
  Limit = Struct.new(:name, :seen, :below, :at_least, :truth, keyword_init: true) do
    def right?
      return false if seen.nan?

      below ? seen < below : seen >= at_least
    end

    def error
      0.0
    end

    def columns
      [truth ? format("%.2f %%", truth) : "", format("%.2f %%", seen), "", below ? "< #{below} %" : ">= #{at_least} %"]
    end
  end

  # True or not: never repeated.
  Fact = Struct.new(:name, :holds, :detail, keyword_init: true) do
    alias_method :right?, :holds

    def self.verdict(list, _tries)
      list.all?(&:right?) ? :right : :wrong
    end

    def self.verdict_of_many(list)
      verdict(list, 1)
    end

    def error
      0.0
    end

    def columns
      ["", detail.to_s, "", ""]
    end
  end

  # Exact quantities and limits can be spoilt by a stall of the machine in a single run, so one bad run is forgiven if
  # the next two are good.
  module MostRuns
    def verdict(list, tries)
      return :right if list.first.right?
      return list.drop(1).all?(&:right?) ? :right : :wrong if list.size >= tries

      list.drop(1).all?(&:right?) ? :again : :wrong
    end

    def verdict_of_many(list)
      list.count { |check| !check.right? } <= list.size / 10 ? :right : :wrong
    end
  end
  Exact.extend(MostRuns)
  Limit.extend(MostRuns)

  # Runs a workload as often as its checks need. tries: at most so many runs; all of them when `every` is set.
  class Judge
    attr_reader :history

    def initialize(workload, seconds:, tries: 3, every: false)
      @workload = workload
      @seconds = seconds
      @tries = tries
      @every = every
      @history = {} # name -> checks, one for each run
      @verdicts = {}
    end

    def run
      @tries.times do
        GC.start # what earlier workloads left is not this one's
        judge(@workload.new.measure(@seconds))
        break unless @every || @verdicts.value?(:again)
      end
      self
    end

    def right?
      !@verdicts.empty? && @verdicts.each_value.all?(:right)
    end

    # [name, columns..., verdict, runs] of each check; a share shows the pool of its runs.
    def rows
      @history.map do |name, checks|
        shown = checks.first.class.respond_to?(:pooled) ? checks.first.class.pooled(checks) : checks.last
        mean = checks.sum(&:error) / checks.size
        [name, *shown.columns, checks.size > 1 && shown.respond_to?(:samples) ? format("%+.2f", mean) : "",
         checks.size, @verdicts[name]]
      end
    end

    private

    def judge(checks)
      raise "#{@workload.id} answered no checks" if checks.empty?

      checks.each do |check|
        list = (@history[check.name] ||= []) << check
        next if @verdicts[check.name] == :right && !@every && !check.is_a?(Fact)

        @verdicts[check.name] = @every ? check.class.verdict_of_many(list) : check.class.verdict(list, @tries)
      end
    end
  end
end
