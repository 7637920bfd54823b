# frozen_string_literal: true

# Test suites stop the time, turn it back, or have the clock raise; a profiler that reads it by Ruby's own methods then
# writes nonsense, or breaks the program.
# Right: the program notices nothing, and the profile has the true times.
require_relative "support"

REAL = Process.method(:clock_gettime)
CPU = Process::CLOCK_THREAD_CPUTIME_ID

def work(seconds)
  limit = REAL.call(CPU) + seconds
  nil while REAL.call(CPU) < limit
end

def with_clock(answer)
  Process.define_singleton_method(:clock_gettime) { |*_arguments| answer.call }
  Time.define_singleton_method(:now) { answer.call }
  work(0.1)
  status_of_a_child = Process.wait2(fork { work(0.02); exit!(7) }).last.exitstatus
  begin
    exec("/no/such/program")
  rescue SystemCallError => e
    return [status_of_a_child, e.class]
  end
end

$VERBOSE = nil # methods are redefined
numbers = [3, 2, 1, 0, -1, -2]
clocks = { "frozen" => -> { 0 }, "backwards" => -> { numbers.rotate!.first }, "nil" => -> {},
           "raising" => -> { raise IOError, "no time" } }
Foreign.start
bad = clocks.map do |name, answer|
  seen = with_clock(answer)
  "#{name}: #{seen.inspect}" unless seen == [7, Errno::ENOENT]
end
Process.define_singleton_method(:clock_gettime, &REAL)
work(0.1)
Foreign.stop
Foreign.verdict(bad)
