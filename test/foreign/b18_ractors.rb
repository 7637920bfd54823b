# frozen_string_literal: true

# A profiler crashed or wrote nonsense when a second Ractor was made: "I hold the lock" no longer means that nothing
# else runs.
# Right: the same results, no crash, and the main Ractor is in the profile.
require_relative "support"

def fib(number)
  number < 2 ? number : fib(number - 1) + fib(number - 2)
end

def results_of_ractors
  ractors = Array.new(3) do |i|
    Ractor.new(i) do |k|
      GC.start
      Array.new(3000) { |j| "r#{k} #{j}" }
      fib(18 + k)
    end
  end
  beside = Thread.new { fib(20) }
  Array.new(2000) { |j| "main #{j}" }
  ractors.map { |ractor| ractor.respond_to?(:take) ? ractor.take : ractor.value } + [beside.value]
end

Foreign.start
$VERBOSE = nil # Ruby's own notice that they are experimental
sums = defined?(Ractor) ? Array.new(4) { results_of_ractors } : []
20.times { fib(24) }
GC.start
Foreign.stop
wrong = sums.reject { |one| one == [2584, 4181, 6765, 6765] }
Foreign.verdict(wrong.map { |one| "Ractors answered #{one.inspect}" })
