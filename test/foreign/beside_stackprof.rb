# frozen_string_literal: true

# Another sampling profiler in the same process, started before, after and inside of ours.
# Right: both have their samples.
require_relative "support"
begin
  require "stackprof"
rescue LoadError
  puts "SKIP: the gem stackprof is not installed"
  exit
end

def work
  Foreign.burn(0.2)
end

def samples_of(mode)
  StackProf.start(mode: mode, interval: mode == :object ? 1 : 1000, raw: true)
  yield
  Array.new(2000) { |i| i.to_s }
  StackProf.stop
  StackProf.results.fetch(:samples)
end

counts = { "before" => samples_of(:cpu) { Foreign.start; work } }
%i[cpu wall object].each { |mode| counts[mode] = samples_of(mode) { work } }
counts["after"] = samples_of(:cpu) { work; Foreign.stop }
Foreign.verdict(counts.select { |_, count| count < 20 }.map { |when_, count| "#{when_}: #{count} samples" })
