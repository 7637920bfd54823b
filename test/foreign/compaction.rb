# frozen_string_literal: true

# Compaction moves objects: a profiler that kept addresses of frames names the wrong ones afterwards, or crashes.
# Right: alive, and every method has its own name.
require_relative "support"

unless GC.respond_to?(:compact)
  puts "SKIP: this Ruby has no compaction"
  exit
end

def compact
  GC.compact
rescue NotImplementedError
  nil # not on this machine
end

GC.auto_compact = true if GC.respond_to?(:auto_compact=) && GC.respond_to?(:auto_compact)
Foreign.start
kept = []
40.times do |i|
  holder = Class.new { class_eval("def moved_#{i}; Foreign.burn(0.01); end", "/nowhere/moved_#{i}.rb", i + 1) }
  holder.new.send("moved_#{i}")
  kept << holder if i.even?
  kept.concat(Array.new(500) { |j| "#{i} #{j}" })
  compact if (i % 8).zero?
end
GC.verify_compaction_references(toward: :empty, double_heap: true) if RUBY_VERSION.start_with?("3.1")
Foreign.burn(0.05)
compact
Foreign.stop
Foreign.verdict(("objects were lost" unless kept.size == 20_020))
