# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "tmpdir"
require_relative "../support/pprof_builder"
require_relative "../support/pprof_decoder"
require_relative "../support/official_pprof"

# The reader that the other tests trust.
class PprofDecoderTest < Minitest::Test
  include PprofBuilder::Wire

  # The worked example of a small CPU profile: encoded by protoc from a text form.
  EXAMPLE = <<~HEX
    0a04 0801 1002 0a04 0803 1004 1218 0a02 0102 1205 0380 87a7 0e1a 0408 0510 061a
    0508 0718 d209 1210 0a01 0212 0501 80ad e204 1a04 0805 1006 2208 0801 2204 0801
    100c 2208 0802 2204 0802 1014 2a08 0801 1008 200a 280a 2a06 0802 1009 200a 3200
    320b 6370 752d 7361 6d70 6c65 7332 0563 6f75 6e74 3208 6370 752d 7469 6d65 320b
    6e61 6e6f 7365 636f 6e64 7332 0974 6872 6561 6420 6964 3205 3720 2838 2932 126c
    6f63 616c 2072 6f6f 7420 7370 616e 2069 6432 0746 6f6f 2362 6172 3206 3c6d 6169
    6e3e 3209 2f61 7070 2f61 2e72 6248 8080 a8b1 e39f e7cb 1750 80b0 9dc2 df01 5a04
    0803 1004 6080 ade2 0470 03
  HEX

  def example
    [EXAMPLE.delete(" \n")].pack("H*")
  end

  PARTS = {
    types: ->(t) { t.field(1, t.field(1, 1) + t.field(2, 2)) },
    samples: ->(t) { t.field(2, t.field(1, 1) + t.field(2, 7)) },
    mappings: ->(_) { "".b },
    locations: ->(t) { t.field(4, t.field(1, 1) + t.field(4, t.field(1, 1) + t.field(2, 3))) },
    functions: ->(t) { t.field(5, t.field(1, 1) + t.field(2, 3)) },
    strings: ->(t) { ["", "cpu-time", "nanoseconds", "Foo#bar"].map { |s| t.field(6, s) }.join },
    rest: ->(_) { "".b }
  }.freeze

  # A small right profile, with some parts replaced.
  def build(**parts)
    PARTS.map { |name, usual| parts.fetch(name) { usual.call(self) } }.join
  end

  def refused(message, **parts)
    error = assert_raises(PprofDecoder::Invalid) { PprofDecoder.decode(build(**parts)) }
    assert_match message, error.message
  end

  def test_reads_the_worked_example
    profile = PprofDecoder.decode(example)
    assert_equal [%w[cpu-samples count], %w[cpu-time nanoseconds]], profile.sample_types.map(&:to_a)
    assert_equal({ "cpu-samples" => 4, "cpu-time" => 40_000_000 }, profile.totals)
    assert_equal [["Foo#bar", "/app/a.rb", 12, 10], ["<main>", "/app/a.rb", 20, 0]],
                 profile.samples[0].frames.map(&:to_a)
    assert_equal({ "thread id" => "7 (8)", "local root span id" => 1234 }, profile.samples[0].labels)
    assert_equal [1_700_000_000_000_000_000, 60_000_000_000], [profile.time_nanos, profile.duration_nanos]
    assert_equal [%w[cpu-time nanoseconds], 10_000_000, "cpu-time"],
                 [profile.period_type.to_a, profile.period, profile.default_sample_type]
    assert_equal(30_000_000, profile.total("cpu-time") { |sample| sample.leaf.name == "Foo#bar" })
  end

  def test_reads_gzip_and_refuses_a_broken_one
    packed = Zlib.gzip(example)
    assert_equal PprofDecoder.decode(example), PprofDecoder.decode(packed)
    half = example.bytesize / 2
    members = Zlib.gzip(example[0, half]) + Zlib.gzip(example[half..-1])
    assert_equal PprofDecoder.decode(example), PprofDecoder.decode(members)
    assert_raises(PprofDecoder::Invalid) { PprofDecoder.decode(packed[0, packed.bytesize / 2]) }
  end

  def test_reads_numbers_packed_and_not
    loose = build(samples: field(2, field(1, 1) + field(1, 1) + field(2, 7)))
    packed = build(samples: field(2, field(1, varint(1) + varint(1)) + field(2, varint(7))))
    assert_equal PprofDecoder.decode(loose), PprofDecoder.decode(packed)
    assert_equal 2, PprofDecoder.decode(packed).samples[0].frames.size
  end

  def test_fields_may_come_in_any_order
    reversed = PARTS.keys.reverse.map { |key| PARTS[key].call(self) }.join
    assert_equal PprofDecoder.decode(build), PprofDecoder.decode(reversed)
  end

  def test_refuses_every_cut_of_the_example
    whole = PprofDecoder.decode(example)
    cuts = (0...example.bytesize).map do |length|
      PprofDecoder.decode(example.byteslice(0, length))
    rescue PprofDecoder::Invalid
      nil
    end
    # A cut between two fields at the end only loses those fields; it must not be taken for the whole.
    refute_includes cuts, whole
    assert_operator cuts.count(nil), :>, example.bytesize - 12
  end

  def test_refuses_what_go_refuses
    refused(/missing sample type/, types: "".b, samples: "".b)
    refused(/1 values for 2 types/, types: PARTS[:types].call(self) + field(1, field(1, 3) + field(2, 2)))
    refused(/unknown location 9/, samples: field(2, field(1, 9) + field(2, 7)))
    refused(/reserved id 0/, locations: field(4, field(4, field(1, 1))))
    refused(/reserved id 0/, functions: field(5, field(2, 3)))
    refused(/more than one location with id 1/, locations: PARTS[:locations].call(self) * 2)
    refused(/unknown function/, locations: field(4, field(1, 1) + field(4, field(1, 8))))
    refused(/string 99 of/, functions: field(5, field(1, 1) + field(2, 99)))
    refused(/string 99 of/, rest: field(13, 99))
    refused(/string \d+ of/, functions: field(5, field(1, 1) + field(2, -1)))
    refused(/string 0 is/, strings: field(6, "x") + PARTS[:strings].call(self))
    refused(/no string table/, strings: "".b)
    refused(/concatenated/, rest: field(9, 5) + field(9, 5))
    refused(/empty input/, **PARTS.keys.map { |k| [k, "".b] }.to_h)
  end

  def test_refuses_what_other_readers_refuse_or_lose
    refused(/without locations/, samples: field(2, field(2, 7)))
    refused(/negative value/, samples: field(2, field(1, 1) + field(2, -7)))
    refused(/unknown mapping/, locations: field(4, field(1, 1) + field(2, 4) + field(4, field(1, 1))))
    refused(/has no line/, locations: field(4, field(1, 1)))
    refused(/negative line/, locations: field(4, field(1, 1) + field(4, field(1, 1) + field(2, -3))))
    refused(/not UTF-8/, strings: PARTS[:strings].call(self) + field(6, "\xff\xfe"))
    refused(/empty string more than once/, strings: PARTS[:strings].call(self) + field(6, ""))
    refused(/demangle/, functions: field(5, field(1, 1) + field(2, 3) + field(3, 3)))
    refused(/default sample type/, rest: field(14, 3))
    refused(/two sample types/, types: PARTS[:types].call(self) * 2,
                                samples: field(2, field(1, 1) + field(2, "\x07\x07")))
    label = field(3, field(1, 1) + field(3, 5))
    refused(/two labels/, samples: field(2, field(1, 1) + field(2, 7) + label * 2))
    refused(/has no value/, samples: field(2, field(1, 1) + field(2, 7) + field(3, field(1, 1))))
    refused(/without a key/, samples: field(2, field(1, 1) + field(2, 7) + field(3, field(3, 5))))
    refused(/wire type 5/, rest: varint(9 << 3 | 5) + "abcd".b)
  end

  def test_go_tool_pprof_agrees_on_both_kinds
    skip "go tool pprof is not installed" unless system("go", "version", out: File::NULL, err: File::NULL)

    Dir.mktmpdir("sonde-pprof") do |dir|
      broken = { "unknown location" => build(samples: field(2, field(1, 9) + field(2, 7))), "cut" => example[0, 40],
                 "string" => build(functions: field(5, field(1, 1) + field(2, 99))) }
      { "good" => build, "example" => example }.each { |name, bytes| assert go_reads?(dir, bytes), name }
      broken.each { |name, bytes| refute go_reads?(dir, bytes), name }
    end
  end

  def test_the_official_schema_reads_the_same
    reason = OfficialPprof.missing
    skip reason if reason

    assert_empty OfficialPprof.differences(example)
    assert_empty OfficialPprof.differences(Zlib.gzip(build))
  end

  private

  def go_reads?(dir, bytes)
    path = File.join(dir, "x.pb")
    File.binwrite(path, bytes)
    _, status = Open3.capture2e({ "PPROF_TMPDIR" => dir, "HOME" => dir }, "go", "tool", "pprof", "-top", path)
    status.success?
  end

  public :field, :varint
end
