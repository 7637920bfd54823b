# frozen_string_literal: true

# A large process with a profiling timer never came out of fork: copying its tables took longer than a sampling period,
# and the kernel begins a clone anew for each signal that arrives.
# Right: a fork takes what it takes without a profiler.
require_relative "support"

MEGABYTES = Foreign.size("FOREIGN_MB", 1200)
LIMIT = 8 # seconds; the machine may be busy, and what this is about never ends

ballast = Array.new(MEGABYTES) { |i| i.to_s + "x" * (1 << 20) } # touched, so that there are tables to copy
Foreign.start(rate: 1000)
took = Array.new(8) do
  began = Foreign.now
  Process.wait(fork { exit!(0) })
  Process.wait(spawn("true"))
  Foreign.now - began
end
Foreign.stop
Foreign.verdict(("a fork took up to #{took.max} s" if took.max > LIMIT || ballast.size < MEGABYTES))
