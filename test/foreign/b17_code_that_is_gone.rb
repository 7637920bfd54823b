# frozen_string_literal: true

# Processes crashed when a result was put together: the code of a sampled method had been collected meanwhile.
# Right: alive, and the methods that are gone are in the profile under their names and paths.
require_relative "support"

Foreign.start
collector = Thread.new { 20.times { GC.start; sleep 0.01 } }
Foreign.size("FOREIGN_METHODS", 120).times do |i|
  eval("def gone_#{i}; Foreign.burn(0.004); end", TOPLEVEL_BINDING, "/nowhere/gone_#{i}.rb", i + 1)
  send("gone_#{i}")
  Object.send(:remove_method, "gone_#{i}")
  inner = Class.new { class_eval("def inner_#{i}; Foreign.burn(0.002); end", "/nowhere/inner_#{i}.rb", 7) }
  inner.new.send("inner_#{i}")
  proc { Foreign.burn(0.001) }.call
  GC.start(full_mark: true, immediate_sweep: true) if (i % 20).zero?
end
collector.join
5.times { GC.start }
Foreign.stop
Foreign.verdict
