# frozen_string_literal: true

module Accuracy
  # The shape of a lightly loaded Puma or Sidekiq: four threads that work about 2 ms (two methods, 70/30) and then wait
  # on a queue. Profilers that read CPU clocks at wall ticks book most of it to the waiting call.
  class Pool < Workload
    describe "pool of four threads, 2 ms jobs, waiting on a queue"
    THREADS = 4
    WAIT = /Queue#(pop|shift|deq)\z/.freeze

    def heavy(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def light(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def job(scale, ledger)
      ms = Accuracy.iterations_per_ms
      ledger.clock(:heavy) { heavy((1.4 * ms * scale).to_i) }
      ledger.clock(:light) { light((0.6 * ms * scale).to_i) }
    end

    def serve(queue, ledger)
      ledger.clock(:all) do
        while (scale = queue.pop)
          job(scale, ledger)
        end
      end
    end

    def feed(queue, seconds)
      until_past(seconds) do
        queue << jitter
        sleep(0.003 * jitter)
      end
      THREADS.times { queue << nil }
    end

    def measure(seconds)
      queue = Queue.new
      ledgers = Array.new(THREADS) { Ledger.new }
      window = Accuracy.window do
        threads = ledgers.each_with_index.map { |ledger, i| thread("pool #{i}") { serve(queue, ledger) } }
        feed(queue, seconds)
        threads.each(&:join)
      end
      checks(window.profile, Ledger.merged(ledgers))
    end

    private

    def checks(profile, truth)
      pool = in_thread(/\Apool /)
      waiting = ->(sample) { sample.frames.any? { |frame| WAIT.match?(frame.name) } }
      wait_cpu = profile.total("cpu-time", &both(pool, waiting))
      other = truth[:all] - truth.total(:heavy, :light)
      shares = %i[heavy light].map do |part|
        share("job, #{part} method", profile, part: within("Pool##{part}"), whole: within("Pool#job"), spread: 2.0,
                                              truth: truth[part], of: truth.total(:heavy, :light))
      end
      shares << SampledLimit.new(name: "CPU booked to the wait", below: 0.02, spread: 2.0, truth_part: other,
                                 truth_whole: truth[:all], seen_part: wait_cpu,
                                 seen_whole: profile.total("cpu-time", &pool),
                                 samples: profile.total("cpu-samples", &pool))
      shares << Exact.new(name: "CPU of the pool", truth: truth[:all], within: 0.01,
                          seen: profile.total("cpu-time", &pool))
    end
  end
end
