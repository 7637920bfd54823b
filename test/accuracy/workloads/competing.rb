# frozen_string_literal: true

module Accuracy
  # Four threads that all want the GVL all the time.
  class Competing < Workload
    describe "four threads competing for the GVL"
    THREADS = 4

    def spin(seconds, created, ledger)
      began = Accuracy.now
      ledger.add(:birth, began - created) # mostly its first wait for the GVL
      ledger.clock(:cpu) { until_past(seconds) { turn } }
      ledger.add(:queued, queued_for_a_cpu) # lets the GVL go, so before the last look at the clock
      ledger.add(:wall, Accuracy.now - began)
    end

    # Time that the kernel made this thread wait for a CPU, since its birth. On a busy machine that is much; it may fall
    # into a GVL wait or not.
    def queued_for_a_cpu
      File.read("/proc/thread-self/schedstat").split[1].to_i
    end

    def turn
      i = 0
      i += 1 while i < 20_000
    end

    def measure(seconds)
      ledgers = Array.new(THREADS) { Ledger.new }
      window = Accuracy.window do
        ledgers.each_with_index.map do |ledger, i|
          created = Accuracy.now
          thread("rival #{i}") { spin(seconds, created, ledger) }
        end.each(&:join)
      end
      ledgers.each_with_index.flat_map { |ledger, i| checks(window.profile, in_thread("rival #{i}"), i, ledger) }
    end

    private

    def checks(profile, mine, number, truth)
      wall = profile.total("wall-time", &mine)
      list = [Exact.new(name: "CPU of thread #{number}", truth: truth[:cpu], within: 0.01,
                        seen: profile.total("cpu-time", &mine)),
              Exact.new(name: "wall of thread #{number}", truth: Bracket.new(truth[:wall], truth.total(:wall, :birth)),
                        within: 0.005, seen: wall)]
      # The VM says since 3.2 when a thread waits for the GVL.
      return list unless profile.types.include?("gvl-wait-time") && RUBY_VERSION >= "3.2"

      idle = truth[:wall] - truth[:cpu]
      list << Exact.new(name: "GVL wait of thread #{number}", within: 0.03,
                        truth: Bracket.new(idle - truth[:queued], idle + truth[:birth]),
                        seen: profile.total("gvl-wait-time", &mine))
      more = profile.samples.select(&mine).map { |s| s.values["gvl-wait-time"] - s.values["wall-time"] }.max
      list << Fact.new(name: "wall contains GVL wait #{number}", holds: more <= 0,
                       detail: format("%.1f ms more", more / 1e6))
    end
  end
end
