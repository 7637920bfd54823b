# frozen_string_literal: true

module Accuracy
  # Three methods of plain Ruby, 50/30/20, in turns that are long against the sampling interval.
  class Split < Workload
    describe "three pure-Ruby methods, 50/30/20"

    def alpha(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def beta(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def gamma(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def drive(seconds, ledger)
      ms = Accuracy.iterations_per_ms
      until_past(seconds) do
        scale = jitter
        ledger.clock(:alpha) { alpha((50 * ms * scale).to_i) }
        ledger.clock(:beta) { beta((30 * ms * scale).to_i) }
        ledger.clock(:gamma) { gamma((20 * ms * scale).to_i) }
      end
    end

    def measure(seconds)
      ledger = Ledger.new
      window = Accuracy.window { ledger.clock(:all) { drive(seconds, ledger) } }
      %i[alpha beta gamma].map do |part|
        share(part.to_s, window.profile, part: leaf_in("Split##{part}"), whole: within("Split#drive"),
                                         truth: ledger[part], of: ledger[:all], long_phases: true)
      end
    end
  end
end
