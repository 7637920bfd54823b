# frozen_string_literal: true

# A little of everything that the extension does, for test/support/valgrind.
require "sonde"

abort Sonde.unsupported_reason unless Sonde.supported?

def work(milliseconds)
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + milliseconds / 1000.0
  text = +""
  text << rand(1000).to_s.reverse while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  text.clear
end

def dive(depth)
  depth.zero? ? work(50) : dive(depth - 1)
end

Sonde.start(rate: 200, max_frames: 20)
3.times { |i| eval("def made_#{i}; work(100); end; made_#{i}") }
threads = Array.new(3) { |i| Thread.new { Thread.current.name = "worker #{i}"; work(50); sleep 0.05; work(50) } }
dive(100)
threads.each(&:join)
3.times { work(50); Sonde.flush }
inner = Sonde.profile(modes: [:wall]) { work(100) }
Fiber.new { Sonde.profile { Fiber.yield } }.resume
GC.start
outer = Sonde.stop
Sonde.status

bytes = outer.instance_variable_get(:@native).encode
sum = Sonde::Native::Profile.read(bytes)
sum.merge(Sonde::Native::Profile.read(bytes), { "copy" => "2" })
sum.top("cpu-time", 10, true)
sum.encode
inner.totals
[bytes[0, bytes.bytesize / 2], "nonsense", "\xFF" * 50].each do |bad|
  begin
    Sonde::Native::Profile.read(bad.b)
  rescue Sonde::FormatError
    next
  end
end

begin
  Sonde::Native.open_window([:gpu], 100.0, 2000, 0)
rescue ArgumentError
  window = Sonde::Native.open_window([:cpu], 100.0, 2000, 1)
end
10.times { |i| eval("def overflow_#{i}; work(10); end; overflow_#{i}") }
window.flush
window.close

child = fork { Sonde.profile { work(50) } && exit!(0) }
exit(Process.wait2(child).last.exitstatus)
