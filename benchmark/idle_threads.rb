# frozen_string_literal: true

# What an instant costs the worker beside a busy thread and 10, 40 or 1,000 sleeping ones: instructions and system
# calls, counted by callgrind, so that it does not matter how fast or busy the machine is.
require "rbconfig"
require "tmpdir"
require_relative "support/measure"

LIB = File.expand_path("../lib", __dir__)

# Prints the number of instants.
PROGRAM = <<~RUBY
  require "sonde"
  sleepers = Integer(ARGV[0])
  queue = Queue.new
  threads = Array.new(sleepers) { Thread.new { queue.pop } }
  sleep 0.1 until threads.all? { |thread| thread.status == "sleep" }
  Sonde.start(rate: 1000) # under valgrind the budget stretches that
  wanted = Integer(ARGV[1])
  # The first instants look once at each thread that was there at the start.
  count = 0
  count += 1 while Sonde.status[:instants] < wanted
  print Sonde.status[:instants]
  $stdout.flush
  Process.exit!(0)
RUBY

# [instructions, system calls] of the worker for an instant. `work` is the worker's own function.
def count(sleepers, instants)
  Dir.mktmpdir do |directory|
    file = File.join(directory, "callgrind")
    command = ["valgrind", "--tool=callgrind", "--max-threads=1200", "--toggle-collect=work", "--collect-systime=yes",
               "--callgrind-out-file=#{file}", "--quiet", RbConfig.ruby, "-I#{LIB}", "-e", PROGRAM,
               sleepers.to_s, instants.to_s]
    seen = IO.popen(command, err: File::NULL, &:read).to_f
    raise "the program under valgrind failed" if seen.zero?

    totals = File.read(file)[/^(?:totals|summary): (.*)/, 1].split.map(&:to_i)
    events = File.read(file)[/^events: (.*)/, 1].split
    [totals[0] / seen, totals[events.index("sysCount")].to_f / seen]
  end
end

unless system("valgrind", "--version", out: File::NULL, err: File::NULL)
  puts "\nIdle threads: skipped, valgrind is not installed"
  exit
end
Measure.heading("The worker's work for one instant, beside a busy thread (callgrind)")
puts "  sleeping threads   instructions   system calls"
few, many = Measure.full_or_short([300, 1500], [30, 60])
sizes = Measure.full_or_short([10, 40, 1000], [10])
sizes.each do |sleepers|
  # The difference of two runs leaves out what happens once: the start, and the first look at each thread.
  more, less = [many, few].map { |n| count(sleepers, n).map { |value| value * n } }
  puts format("  %16d   %12.0f   %12.1f", sleepers, *more.zip(less).map { |a, b| (a - b) / (many - few) })
end
