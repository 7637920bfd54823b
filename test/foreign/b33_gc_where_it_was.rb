# frozen_string_literal: true

# The collector's time appeared later than it was, below whatever ran then: its sample was completed in a postponed job,
# and the clock was read there.
# Right: all of it is below `collecting`, none below `quiet`, and the sum is between Ruby's own, which is CPU time, and
# the time that passed.
require_relative "support"

def quiet # allocates nothing
  Foreign.burn(0.3)
end

# Seconds by Ruby's own count.
def collector_time
  GC.respond_to?(:total_time) ? GC.total_time / 1e9 : GC::Profiler.total_time
end

def collecting
  12.times { GC.start }
  2.times do
    GC.start(immediate_sweep: false)
    GC.start
  end
end

live = Array.new(200_000, &:to_s)
GC.start
GC.disable
GC::Profiler.enable
Foreign.start
quiet
GC.enable
before = collector_time
began = Foreign.now
collecting
took = Foreign.now - began
spent = collector_time - before
GC.disable
quiet
Foreign.stop
Foreign.note("spent", spent)
Foreign.note("took", took)
Foreign.verdict(("the collector hardly ran: #{spent}" unless spent > 0.01 && live.size == 200_000))
