# frozen_string_literal: true

module Accuracy
  # Threads that were blocked before the profile began and wake after its end. Nothing ever happens in them, so a
  # profiler that waits for an event has nothing to say about them.
  class NeverWakes < Workload
    describe "threads that never wake"
    LEAVES = { "sleep" => /Kernel#sleep\z/, "pop" => /Queue#pop\z/, "select" => /IO\.select|select\z/ }.freeze

    def sleeps
      sleep
    end

    def pops(queue)
      queue.pop
    end

    def selects(reader)
      IO.select([reader])
    end

    def measure(seconds)
      reader, writer = IO.pipe
      queue = Queue.new
      threads = [thread("never sleep") { sleeps }, thread("never pop") { pops(queue) },
                 thread("never select") { selects(reader) }]
      sleep 0.01 until threads.all? { |t| t.status == "sleep" }
      window = Accuracy.window { sleep seconds }
      checks(window)
    ensure
      threads.to_a.each(&:kill).each(&:join)
      [reader, writer].compact.each(&:close)
    end

    private

    def checks(window)
      profile = window.profile
      length = profile.duration_nanos
      list = [Exact.new(name: "length of the profile", truth: window.wall, within: 0.001, seen: length)]
      LEAVES.each do |name, leaf|
        mine = profile.samples.select(&in_thread("never #{name}"))
        list << Exact.new(name: "wall of #{name}", truth: length, within: 0.005,
                          seen: mine.sum { |sample| sample.values["wall-time"] })
        list << Exact.new(name: "CPU of #{name}, plus 1 s", truth: 1_000_000_000, within: 0.005,
                          seen: 1_000_000_000 + mine.sum { |sample| sample.values["cpu-time"] })
        list << Fact.new(name: "stack of #{name}", holds: mine.any? && mine.all? { |s| named?(s, "#{name}s", leaf) },
                         detail: mine.map { |s| s.leaf.name }.uniq.join(", "))
      end
      list
    end

    # The leaf may have frames of Ruby's own below it (Queue#pop is partly Ruby since 3.3).
    def named?(sample, method, leaf)
      sample.frames.first(3).any? { |frame| leaf.match?(frame.name) } &&
        sample.frames.any? { |frame| method_of(frame) == "NeverWakes##{method}" }
    end
  end
end
