# frozen_string_literal: true

# The flush and the encoding of a large profile: distinct stacks of depth 50 over 2,000 methods. Needs a build with
# SONDE_TESTING=1 (run.rb sees to that).
require "sonde"
require "zlib"
require_relative "support/measure"

STACKS = Measure.full_or_short(100_000, 2000)
METHODS = 2000
DEPTH = 50

module Many
  METHODS.times do |number|
    class_eval <<~RUBY, "many_#{number / 20}.rb", number % 20 * 5 + 1
      def self.method_#{number}(path, at)
        at.zero? ? Sonde::Native::Testing.bench_sample(1) : __send__(path[at], path, at - 1)
      end
    RUBY
  end
end

def timed
  began = Measure.monotonic
  result = yield
  [result, (Measure.monotonic - began) * 1000]
end

names = Array.new(METHODS) { |number| :"method_#{number}" }
random = Random.new(1)
window = Sonde::Native.open_window(%i[cpu wall], 1, 2000, 1 << 30)
_, sampling = timed do
  STACKS.times do
    path = Array.new(DEPTH) { names[random.rand(METHODS)] }
    Many.__send__(path.last, path, DEPTH - 2)
  end
end
memory = Sonde.status[:memory_bytes]
profile, flush = timed { window.close }
pause = Sonde.status[:longest_flush_pause_ns] / 1e6
bytes, encode = timed { profile.encode }
packed, pack = timed { Zlib.gzip(bytes, level: 1) }

Measure.heading("A large profile: #{STACKS} distinct stacks of depth #{DEPTH}, #{METHODS} methods")
puts format("  sampling them (with the program itself)   %8.1f ms, %.1f MB in the slot", sampling, memory / 1e6)
puts format("  flush: names, samples, merge              %8.1f ms, the step with the GVL at its start %.1f ms", flush,
            pause)
puts format("  encode                                    %8.1f ms, %.1f MB (%d samples)", encode, bytes.bytesize / 1e6,
            profile.sample_count)
puts format("  gzip, level 1                             %8.1f ms, %.1f MB", pack, packed.bytesize / 1e6)
