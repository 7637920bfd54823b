# frozen_string_literal: true

# CPU time was counted twice or not at all in programs with fibers (Enumerator#next is one): the last reading of the
# clock was kept in a variable of the thread's, which is one of the fiber's.
# Right: the CPU in the profile is what the process used, never negative, and nothing is left where the program sees it.
require_relative "support"

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def fiber_burn(seconds)
  Foreign.burn(seconds)
end

polluted = []
Foreign.start
began = cpu
fibers = Array.new(300) do
  Fiber.new do
    sleep 0.0005
    Fiber.yield
    polluted.concat(Thread.current.keys)
    fiber_burn(0.0005)
  end
end
fibers.each(&:resume)
fiber_burn(0.4) # while 300 old readings lie about
fibers.each(&:resume)
list = Enumerator.new { |yielder| 200.times { |i| fiber_burn(0.0005); yielder << i } }
200.times { list.next }
Foreign.note("used", cpu - began)
polluted.concat(Thread.current.keys + Thread.current.thread_variables)
Foreign.stop
Foreign.verdict(("left in the program's fibers: #{polluted.uniq.inspect}" unless polluted.empty?))
