# frozen_string_literal: true

module Accuracy
  # Two lines of one method, 70/30: told apart by the line of the leaf frame.
  class TwoLines < Workload
    describe "two lines of one method, 70/30"
    LONG = __LINE__ + 6 # the two lines of `lines` that do the work
    SHORT = LONG + 3

    def lines(long, short, ledger)
      began = Accuracy.thread_cpu
      i = 0
      i += 1 while i < long
      turned = Accuracy.thread_cpu
      i = 0
      i += 1 while i < short
      ended = Accuracy.thread_cpu
      ledger.add(:long, turned - began)
      ledger.add(:short, ended - turned)
    end

    def drive(seconds, ledger)
      ms = Accuracy.iterations_per_ms
      until_past(seconds) do
        scale = jitter
        lines((70 * ms * scale).to_i, (30 * ms * scale).to_i, ledger)
      end
    end

    def measure(seconds)
      ledger = Ledger.new
      window = Accuracy.window { ledger.clock(:all) { drive(seconds, ledger) } }
      { long: LONG, short: SHORT }.map do |part, line|
        on_line = lambda do |sample|
          frame = sample.frames.find { |f| f.name != GC_FRAME }
          method_of(frame) == "TwoLines#lines" && frame.line == line
        end
        share("#{part} line", window.profile, part: on_line, whole: within("TwoLines#drive"),
                                              truth: ledger[part], of: ledger[:all], long_phases: true)
      end
    end
  end
end
