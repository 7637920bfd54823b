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

# Allocations and living objects: windows, picks, places of large objects, weak references.
modes = %i[alloc heap].reject do |mode|
  Sonde::Native.features[mode == :alloc ? "allocations (mode alloc)" : "living objects (mode heap)"]
end
unless modes.empty?
  kept = []
  Sonde.start(modes: [:cpu, *modes])
  make = lambda do |milliseconds|
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + milliseconds / 1000.0
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
      50.times { Object.new }
      kept << "x" * 20_000 << [1, 2].freeze
      kept.clear if kept.size > 500
    end
  end
  maker = Thread.new { make[500] }
  make[1000]
  maker.join
  GC.start
  make[500]
  Sonde.flush
  GC.compact if GC.respond_to?(:compact)
  make[500]
  pid = fork { make[200] || exit!(Sonde.stop ? 0 : 1) }
  abort "child: #{$?}" unless Process.wait(pid) && $?.success?
  Sonde.profile(modes: modes) { make[300] }
  profile = Sonde.stop
  abort "no allocations: #{Sonde.status}" unless profile.totals["alloc-samples"].to_i.positive?
end

child = fork { Sonde.profile { work(50) } && exit!(0) }
exit(Process.wait2(child).last.exitstatus)
