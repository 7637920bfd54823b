# frozen_string_literal: true

# An idle process crashed while Ruby ran finalizers, which it does in a postponed job: a second such job, the
# profiler's, had run in the middle of one and begun them again.
# Right: no crash, and each finalizer runs once. FOREIGN_LOOPS=200 is the long form.
require_relative "support"
require "weakref"

made = done = 0
finalizer = proc do
  done += 1
  Array.new(20) { |i| "in a finalizer #{i}" }
end
Foreign.start
ended = false
idle = Thread.new { sleep 0.002 until ended }
busy = Thread.new do
  turns = 0
  turns += 1 until ended
end
Foreign.size("FOREIGN_LOOPS", 12).times do
  1500.times do
    ObjectSpace.define_finalizer(Object.new, finalizer)
    made += 1
    WeakRef.new(Object.new)
  end
  GC.start
  sleep 0.005
end
ended = true
[idle, busy].each(&:join)
3.times { GC.start }
Foreign.stop
Foreign.verdict(("#{done} of #{made} finalizers ran" unless done > made / 2 && done <= made))
