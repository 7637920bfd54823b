# frozen_string_literal: true

module Accuracy
  # Work at the bottom of a deep recursion: 60/40 between two leaf methods.
  class Recursion < Workload
    describe "recursion 600 deep"
    DEPTH = 600
    OPTIONS = {}.freeze

    def down(levels, seconds, ledger)
      return bottom(seconds, ledger) if levels.zero?

      down(levels - 1, seconds, ledger)
    end

    def bottom(seconds, ledger)
      ms = Accuracy.iterations_per_ms
      until_past(seconds) do
        scale = jitter
        ledger.clock(:more) { more((24 * ms * scale).to_i) }
        ledger.clock(:less) { less((16 * ms * scale).to_i) }
      end
    end

    def more(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def less(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def top(seconds, ledger)
      down(self.class::DEPTH, seconds, ledger)
    end

    def measure(seconds)
      ledger = Ledger.new
      window = Accuracy.window(**self.class::OPTIONS) { top(seconds, ledger) }
      leaves = ->(sample) { leaf_in("Recursion#more").call(sample) || leaf_in("Recursion#less").call(sample) }
      shares = %i[more less].map do |part|
        share("leaf #{part}", window.profile, part: leaf_in("Recursion##{part}"), whole: leaves,
                                              truth: ledger[part], of: ledger.total(:more, :less))
      end
      shares + ends(window.profile.samples.select(&leaves))
    end

    private

    def ends(samples)
      depths = samples.map { |sample| count(sample, "Recursion#down") }.uniq
      [Fact.new(name: "the root is kept", holds: samples.any? && samples.all? { |s| count(s, "Recursion#top") == 1 }),
       Fact.new(name: "all levels are kept", holds: depths == [self.class::DEPTH + 1], detail: depths.join(", ")),
       Fact.new(name: "nothing is omitted",
                holds: samples.none? { |s| s.frames.any? { |f| f.name.include?("omitted") } })]
    end

    def count(sample, method)
      sample.frames.count { |frame| method_of(frame) == method }
    end
  end

  # Deeper than max_frames: the middle is folded, both ends stay.
  class DeepRecursion < Recursion
    describe "recursion 5,000 deep, max_frames 200"
    DEPTH = 5_000
    OPTIONS = { max_frames: 200 }.freeze

    private

    def ends(samples)
      sizes = samples.map { |sample| sample.frames.size }.uniq
      [Fact.new(name: "the root is kept", holds: samples.any? && samples.all? { |s| count(s, "Recursion#top") == 1 }),
       Fact.new(name: "at most max_frames", holds: sizes.all? { |size| size <= 200 }, detail: sizes.join(", ")),
       Fact.new(name: "says how many it omits", holds: samples.any? && samples.all? { |s| whole?(s) },
                detail: samples.flat_map { |s| s.frames.map(&:name).grep(/omitted/) }.uniq.join(", "))]
    end

    # Levels shown and levels omitted make up all levels: only levels can have been omitted.
    def whole?(sample)
      omitted = sample.frames.map { |frame| frame.name[/\A\((\d+) frames omitted\)\z/, 1] }.compact
      omitted.size == 1 && count(sample, "Recursion#down") + omitted[0].to_i == DEPTH + 1
    end
  end
end
