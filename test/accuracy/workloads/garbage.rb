# frozen_string_literal: true

module Accuracy
  # GC pauses: as long as the VM says, under the method that ran into them, none elsewhere.
  class Garbage < Workload
    describe "time in GC, and where"

    def quiet(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def collecting
      GC.start
      2.times { GC.start(immediate_sweep: false) } # two in a row
    end

    def drive(seconds, ledger)
      ms = Accuracy.iterations_per_ms
      GC.disable # so that GC runs in `collecting` only
      until_past(seconds) do
        quiet((20 * ms * jitter).to_i)
        GC.enable
        began = Accuracy.now
        ledger.clock(:cpu) { collecting }
        ledger.add(:wall, Accuracy.now - began)
        GC.disable
      end
    ensure
      GC.enable
    end

    # The VM's own count, in nanoseconds: CPU, without what the events before and after it take.
    def gc_time
      return GC.total_time if exact_time?

      (GC::Profiler.total_time * 1e9).to_i
    end

    def measure(seconds)
      live = Array.new(300_000) { |i| i.to_s }
      GC::Profiler.enable unless exact_time?
      GC.start
      ledger = Ledger.new
      window = Accuracy.window do
        before = gc_time
        drive(seconds, ledger)
        ledger.add(:vm, gc_time - before)
      end
      GC::Profiler.disable unless exact_time?
      checks(window.profile, ledger, live.size)
    end

    private

    # Before Ruby 3.1 the VM keeps no such time, so that Sonde has only its samples to tell it from.
    def exact_time?
      GC.respond_to?(:total_time)
    end

    def sampling_error(samples)
      samples < MINIMUM_SAMPLES ? 0.0 : STANDARD_ERRORS / Math.sqrt(samples)
    end

    def checks(profile, truth, live)
      collecting = within("Garbage#collecting")
      in_gc = ->(sample) { sample.leaf.name == GC_FRAME }
      seen = profile.total("gc-time", &within("Garbage#drive"))
      # `collecting` does nothing but GC, so the truth lies between the VM's count and the clocks around it.
      [Exact.new(name: "GC time", truth: Bracket.new(truth[:vm], truth[:wall]), seen: seen,
                 within: exact_time? ? 0.05 : sampling_error(profile.total("cpu-samples", &in_gc))),
       Exact.new(name: "GC under collecting", truth: seen, within: 0.01, seen: profile.total("gc-time", &collecting)),
       Exact.new(name: "GC frames' CPU", truth: Bracket.new(truth[:vm], truth[:cpu]), within: 0.1,
                  seen: profile.total("cpu-time", &in_gc)),
       Fact.new(name: "no GC under quiet", holds: profile.total("gc-time", &within("Garbage#quiet")).zero?,
                detail: "#{live} strings alive")]
    end
  end
end
