# frozen_string_literal: true

# Ruby's own tools at once: coverage, trace points, allocation tracing, GC stress, the GC profiler, breakpoints by
# set_trace_func. Each adds hooks of its own to what a profiler hooks into.
require_relative "support"
require "coverage"
require "objspace"
require "tempfile"

def work(number)
  number < 2 ? number : work(number - 1) + work(number - 2)
end

Foreign.start
problems = []
Tempfile.create(["covered", ".rb"]) do |file|
  file.write("def covered(x)\n  x + 1\nend\ncovered(1)\n")
  file.flush
  Coverage.start
  load file.path
  problems << "coverage" unless Coverage.result.fetch(file.path) == [1, 1, nil, 1]
end
calls = 0
trace = TracePoint.new(:call, :c_call, :return, :line) { |point| calls += 1 if point.event == :call }
trace.enable { work(12) }
problems << "#{calls} calls traced" unless calls >= 465
ObjectSpace.trace_object_allocations do
  object = Object.new
  problems << "allocation" unless ObjectSpace.allocation_sourcefile(object) == __FILE__
end
GC::Profiler.enable
GC.stress = true
work(5).to_s
GC.stress = false
problems << "GC profiler" if GC::Profiler.raw_data.empty?
GC::Profiler.disable
lines = 0
set_trace_func(->(event, *) { lines += 1 if event == "line" })
work(8)
set_trace_func(nil)
problems << "lines" unless lines.positive?
Foreign.burn(0.1)
Foreign.stop
Foreign.verdict(problems)
