# frozen_string_literal: true

require "digest"
require "zlib"

module Accuracy
  # C work in a background thread while the main thread computes. Zlib lets the GVL go while it works; Digest keeps it.
  # The main thread naps, so that the background thread need not wait for the VM's time slice after each deflate: it
  # would then run too little for a short run to say anything.
  class CWithoutGvl < Workload
    describe "C work in the background: zlib (off the GVL), digest"
    DEFLATE = /\AZlib\b.*deflate\z/.freeze
    SHA = /\ADigest\b.*(digest|update|finish)\z/.freeze

    def compute(iterations)
      i = 0
      i += 1 while i < iterations
    end

    def background(seconds, text, big, ledger)
      ledger.clock(:all) do
        until_past(seconds) do
          if random.rand(2).zero?
            ledger.clock(:sha) { Digest::SHA256.digest(big) }
          else
            ledger.clock(:deflate) { Zlib::Deflate.deflate(text) }
          end
        end
      end
    end

    def drive(seconds, ledger)
      ledger.clock(:all) do
        until_past(seconds) do
          compute(3 * Accuracy.iterations_per_ms)
          sleep(0.001)
        end
      end
    end

    def measure(seconds)
      back = Ledger.new
      main = Ledger.new
      text = Array.new(60_000) { random.rand(1 << 20).to_s(36) }.join(" ")
      big = random.bytes(4 << 20)
      window = Accuracy.window do
        other = thread("background") { background(seconds, text, big, back) }
        drive(seconds, main)
        other.join
      end
      there = both(in_thread("background"), within("CWithoutGvl#background"))
      checks = { "deflate" => [DEFLATE, back[:deflate]], "digest" => [SHA, back[:sha]] }.map do |name, (pattern, truth)|
        share(name, window.profile, part: leaf_in(pattern), whole: there, truth: truth, of: back[:all], spread: 2.0)
      end
      checks << Exact.new(name: "credited to zlib and digest", truth: back.total(:deflate, :sha), within: 0.03,
                          seen: window.profile.total("cpu-time", &both(there, leaf_in(Regexp.union(DEFLATE, SHA)))))
      checks << Exact.new(name: "main thread, meanwhile", truth: main[:all], within: 0.01,
                          seen: window.profile.total("cpu-time", &within("CWithoutGvl#drive")))
    end
  end
end
