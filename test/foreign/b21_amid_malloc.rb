# frozen_string_literal: true

# A sampler that kept its data with malloc, in the signal handler: a deadlock, or a broken heap, when the signal came
# in the middle of malloc.
# Right: everything goes on. The sanitizers' part of this row is test/c/run and test/support/valgrind.
require_relative "support"
require "timeout"

Foreign.start(rate: 1000)
done = false
makers = Array.new(3) do
  Thread.new do
    turns = 0
    until done
      Array.new(300) { |i| "s" * (i * 7 % 4096) }.join.size
      turns += 1
    end
    turns
  end
end
20.times do
  text = +""
  2000.times { |i| text << "growing #{i}" }
end
sleep 0.5
done = true
counts = Timeout.timeout(60) { makers.map(&:value) }
Foreign.stop
Foreign.verdict(("a thread never came to anything: #{counts.inspect}" unless counts.min.positive?))
