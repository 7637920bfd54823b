# frozen_string_literal: true

require "zlib"

module Accuracy
  # Everything at once: the sums must be the process's own clock and the time each thread lived.
  class Totals < Workload
    describe "totals: CPU of the process, wall of each thread"

    def busy
      Array.new(200) { |i| i.to_s * 3 }.sort.join.hash
    end

    def compress(text)
      Zlib::Deflate.deflate(text)
    end

    def drive(seconds, text)
      threads = [thread("total busy") { until_past(seconds) { busy } },
                 thread("total zlib") { until_past(seconds) { compress(text) } },
                 thread("total naps") { until_past(seconds) { sleep 0.004 } },
                 thread("total sleep") { sleep seconds }]
      until_past(seconds) do
        Thread.new { 20.times { busy } }.join
        sleep 0.005
      end
      threads.each(&:join)
    end

    def measure(seconds)
      text = Array.new(30_000) { random.rand(1 << 20).to_s(36) }.join(" ")
      window = Accuracy.window { drive(seconds, text) }
      profile = window.profile
      list = [Exact.new(name: "CPU of the process", truth: window.cpu, within: 0.01, seen: profile.total("cpu-time")),
              Exact.new(name: "length of the profile", truth: window.wall, within: 0.001, seen: profile.duration_nanos),
              Exact.new(name: "wall of the main thread", truth: profile.duration_nanos, within: 0.005,
                        seen: profile.total("wall-time", &main_thread(profile)))]
      # These live from the start of drive to its end, nearly.
      %w[busy zlib naps sleep].each do |name|
        list << Exact.new(name: "wall of #{name}", within: 0.005,
                          seen: profile.total("wall-time", &in_thread("total #{name}")),
                          truth: Bracket.new((seconds * 1e9).to_i, window.wall.outside))
      end
      list
    end

    private

    # Whatever its name is, this is the thread whose stacks have drive but no thread block in them.
    def main_thread(profile)
      sample = profile.samples.find { |s| s.frames.any? { |f| f.name.match?(/Totals#measure/) } }
      id = sample&.labels&.fetch("thread id")
      raise "no sample of the main thread" unless id

      ->(sample) { sample.labels["thread id"] == id }
    end
  end
end
