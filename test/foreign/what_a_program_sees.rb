# frozen_string_literal: true

# Programs look at themselves: at their threads, signals, descriptors, random numbers, variables. A profiler that leaves
# traces there changes what they do. All that is printed here must be the same with and without one.
require_relative "support"

Foreign.start
seen = {}
seen["threads"] = Thread.list.size
seen["thread variables"] = [Thread.current.keys, Thread.current.thread_variables]
seen["thread group"] = ThreadGroup::Default.list.size
seen["name of the thread"] = Thread.current.name
seen["handled interrupts"] = Thread.pending_interrupt?
srand(42)
Foreign.burn(0.1)
seen["random numbers"] = Array.new(3) { rand(1000) }
seen["last status, error, match"] = [$?, $!, $~, $_]
seen["main"] = [self.to_s, self.instance_variables, binding.local_variables, caller.size]
seen["ends"] = [__FILE__ == $0, ARGV, $0 == __FILE__]
seen["switches"] = [$VERBOSE, $DEBUG, GC.stress, Thread.abort_on_exception, Thread.report_on_exception]
seen["warnings"] = [Warning[:deprecated], Warning[:experimental]]
seen["encodings"] = [Encoding.default_external, Encoding.default_internal, __ENCODING__].map(&:inspect)
seen["separators"] = [$/, $,, $;]
seen["descriptors"] = Dir.children("/proc/self/fd").size
seen["umask"] = File.umask
seen["directory"] = Dir.pwd
seen["priority"] = Process.getpriority(Process::PRIO_PROCESS, 0)
seen["limits"] = %i[NOFILE STACK AS CORE].map { |name| Process.getrlimit(name) }
seen["blocked signals"] = File.read("/proc/self/status")[/SigBlk:\s*(\h+)/, 1]
seen["ignored signals"] = File.read("/proc/self/status")[/SigIgn:\s*(\h+)/, 1]
seen["handlers"] = %w[INT TERM HUP QUIT USR1 USR2 ALRM CHLD PROF WINCH].map { |name| trap(name, "DEFAULT") }
seen["collector"] = [GC.disable, GC.enable]
seen["compiler"] = RubyVM::InstructionSequence.compile_option.select { |_, value| value == true }.keys.sort
seen["RUBYOPT"] = ENV["RUBYOPT"].to_s.sub(/-r\S*sonde\S*\s*/, "")
seen["child"] = begin
  Process.wait(-1, Process::WNOHANG)
rescue Errno::ECHILD => e
  e.class
end
seen["trace"] = begin
  raise "x"
rescue RuntimeError => e
  [e.backtrace.size, e.full_message(highlight: false).lines.size]
end
seen["fork"] = [method(:fork), method(:exec), method(:exit!), Process.method(:daemon)].map(&:arity)
Foreign.stop
seen.each { |what, value| puts "#{what}: #{value.inspect}" }
