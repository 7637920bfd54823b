# frozen_string_literal: true

module Accuracy
  # Hundreds of threads that live for 5 to 20 ms of CPU. Some die between two samples; their time must not be lost, and
  # little of it may be nameless.
  class ShortThreads < Workload
    describe "hundreds of threads of 5 to 20 ms"

    def brief(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def drive(seconds, ledger)
      ms = Accuracy.iterations_per_ms
      count = 0
      until_past(seconds) do
        iterations = ((5 + 15 * random.rand) * ms).to_i
        count += 1
        others = other_threads { thread("brief #{count}") { ledger.clock(:brief) { brief(iterations) } }.join }
        ledger.add(:life, others)
      end
      count
    end

    # CPU that was not this thread's: the thread's whole life, its birth and death too, and Sonde's own thread.
    def other_threads
      before = Accuracy.process_cpu - Accuracy.thread_cpu
      yield
      Accuracy.process_cpu - Accuracy.thread_cpu - before
    end

    def measure(seconds)
      ledger = Ledger.new # only one of the threads lives at a time
      count = 0
      window = Accuracy.window { count = drive(seconds, ledger) }
      checks(window.profile, ledger, count)
    end

    private

    def checks(profile, ledger, count)
      mine = in_thread(/\Abrief \d+\z/)
      all = profile.total("cpu-time", &mine)
      nameless = profile.total("cpu-time", &both(mine, leaf_in("(not sampled)")))
      seen = profile.samples.select(&mine).map { |sample| sample.labels["thread name"] }.uniq.size
      truth = Bracket.new(ledger[:brief], ledger[:life])
      [Exact.new(name: "CPU of all of them", truth: truth, within: 0.02, seen: all),
       Limit.new(name: "(not sampled)", below: 5.0, truth: 0.0, seen: 100 * nameless.fdiv(all)),
       Limit.new(name: "in their method", at_least: 93.0, truth: 100.0,
                 seen: 100 * profile.total("cpu-time", &within("ShortThreads#brief")).fdiv(all)),
       Fact.new(name: "each has its name", holds: seen == count, detail: "#{seen} of #{count}")]
    end
  end
end
