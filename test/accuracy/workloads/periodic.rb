# frozen_string_literal: true

module Accuracy
  # Work at absolute periods: four phases of equal work after each waking. A sampler with a fixed period, or one in step
  # with the kernel's tick, sees some phases too often and others never.
  class Periodic < Workload
    PHASES = %i[phase_a phase_b phase_c phase_d].freeze

    def phase_a(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def phase_b(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def phase_c(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def phase_d(iterations)
      i = 0
      i += 1 while i < iterations
    end

    # Half of each period is work.
    def drive(seconds, ledger, period)
      each = (period * Accuracy.iterations_per_ms / 8).to_i
      due = Accuracy.now
      until_past(seconds) do
        ledger.clock(:phase_a) { phase_a(each) }
        ledger.clock(:phase_b) { phase_b(each) }
        ledger.clock(:phase_c) { phase_c(each) }
        ledger.clock(:phase_d) { phase_d(each) }
        due += period * 1_000_000
        pause = due - Accuracy.now
        sleep(pause / 1e9) if pause.positive?
      end
    end

    def measure(seconds)
      ledger = Ledger.new
      window = Accuracy.window { drive(seconds, ledger, self.class::PERIOD_MS) }
      in_a_phase = ->(sample) { sample.frames.any? { |frame| method_of(frame).match?(/\APeriodic#phase_[a-d]\z/) } }
      PHASES.map do |phase|
        share(phase.to_s.tr("_", " "), window.profile, part: within("Periodic##{phase}"), whole: in_a_phase,
              truth: ledger[phase], of: ledger.total(*PHASES), spread: 2.0)
      end
    end
  end
  Workload.all.delete(Periodic)

  class Periodic8 < Periodic
    describe "work at an absolute period of 8 ms"
    PERIOD_MS = 8
  end

  class Periodic10 < Periodic
    describe "work at an absolute period of 10 ms"
    PERIOD_MS = 10
  end

  class Periodic20 < Periodic
    describe "work at an absolute period of 20 ms"
    PERIOD_MS = 20
  end
end
