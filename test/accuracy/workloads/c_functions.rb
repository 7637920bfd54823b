# frozen_string_literal: true

require "json"

module Accuracy
  # C functions that hold the GVL. They are sampled at the safepoint that follows them, so the time must be credited to
  # them and not to the caller or to the next call.
  class CFunctions < Workload
    describe "C functions under the GVL, as the leaf"
    LEAVES = { sort: "Array#sort", pow: "Integer#pow", unpack: "String#unpack", tr: "String#tr", gsub: "String#gsub",
               json: /\AJSON::Ext::Parser[.#]parse\z/ }.freeze

    def drive(seconds, ledger)
      numbers = Array.new(20_000) { random.rand(1 << 60) }
      base, exponent, modulus = Array.new(3) { random.rand(1 << 2048) | 1 << 2047 }
      bytes = random.bytes(100_000)
      text = "some plain text " * 40_000
      short = "some plain text " * 4_000
      rows = Array.new(400) { |i| { "number" => i, "text" => "line #{i}", "list" => [i, nil, true] } }
      document = JSON.generate(rows)
      until_past(seconds) do
        case random.rand(6)
        when 0 then ledger.clock(:sort) { numbers.sort }
        when 1 then ledger.clock(:pow) { base.pow(exponent, modulus) }
        when 2 then ledger.clock(:unpack) { bytes.unpack("C*") }
        when 3 then ledger.clock(:tr) { text.tr("a-y", "b-z") }
        when 4 then ledger.clock(:gsub) { short.gsub(/plain/, "simple") }
        when 5 then ledger.clock(:json) { JSON.parse(document) }
        end
      end
    end

    def measure(seconds)
      ledger = Ledger.new
      window = Accuracy.window { ledger.clock(:all) { drive(seconds, ledger) } }
      whole = within("CFunctions#drive")
      shares = LEAVES.map do |part, leaf|
        share(leaf.is_a?(Regexp) ? "JSON's parser" : leaf, window.profile, part: leaf_in(leaf), whole: whole,
                                                                           truth: ledger[part], of: ledger[:all])
      end
      # Without JSON, around whose parser there is some Ruby.
      pure = LEAVES.reject { |part, _| part == :json }
      shares << Exact.new(name: "credited to the C functions", truth: ledger.total(*pure.keys),
                          within: uncredited(shares.first.samples),
                          seen: window.profile.total("cpu-time", &both(whole, leaf_in(Regexp.union(pure.values)))))
    end

    private

    # 3 %, and what so many samples can tell of that.
    def uncredited(samples)
      0.03 + STANDARD_ERRORS * Math.sqrt(0.03 * 0.97 / samples)
    end
  end
end
