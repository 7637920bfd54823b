# frozen_string_literal: true

# Two profilers in one process wanted SIGPROF: the second failed with a message nobody understood, or silently took the
# signal away from the first. The other profiler is played here by setitimer and a trap.
# Right: the other one keeps its ticks and gets none of ours, and ours works too.
require_relative "support"
require "fiddle"

ITIMER_PROF = 2
SETITIMER = Fiddle::Function.new(Fiddle.dlopen(nil)["setitimer"],
                                 [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)

def arm(microseconds)
  SETITIMER.call(ITIMER_PROF, [0, microseconds, 0, microseconds].pack("q4"), nil)
end

ticks = 0
trap("PROF") { ticks += 1 }
arm(10_000)
part = lambda do |&work|
  before = ticks
  work.call
  ticks - before
end
# By CPU time, as the timer itself: what others do on the machine does not matter.
counts = [part.call { Foreign.burn(0.3) },
          part.call { Foreign.start; Foreign.burn(0.3); Foreign.stop },
          part.call { Foreign.burn(0.3) }]
arm(0)
Foreign.burn(0.02)
fair = counts[1] >= counts[0] / 2 && counts[2] >= counts[0] / 2 && counts[1] <= counts[0] * 2 + 20
Foreign.verdict(("the other's ticks before, during and after: #{counts.inspect}" unless fair))
