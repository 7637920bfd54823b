# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"
require "pathname"
require "tmpdir"
require "zlib"

class ProfileTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
    @profile = Sonde.profile { burn(0.1) }
  end

  def test_times
    assert_in_delta Time.now.to_f, @profile.finish.to_f, 5
    assert_in_delta @profile.duration, @profile.finish - @profile.start, 0.001
    assert_operator @profile.duration, :>=, 0.1
  end

  def test_sample_types_and_totals
    assert_includes @profile.sample_types, %w[cpu-time nanoseconds]
    assert_includes @profile.sample_types, %w[wall-time nanoseconds]
    assert_equal @profile.sample_types.map(&:first), @profile.totals.keys
    assert_operator @profile.sample_count, :>, 0
  end

  def test_top
    entries = @profile.top(by: "cpu-time", limit: 3)
    assert_operator entries.size, :<=, 3
    assert_equal entries.map(&:flat).sort.reverse, entries.map(&:flat)
    cumulative = @profile.top(cumulative: true).map(&:cumulative)
    assert_equal cumulative.sort.reverse, cumulative
    assert_includes @profile.top(cumulative: true, limit: 50).map(&:name).join("\n"), "burn"
  end

  def test_top_refuses_wrong_options
    error = assert_raises(ArgumentError) { @profile.top(by: "x") }
    assert_match(/wrong option by: "x" \(allowed: cpu-time, /, error.message)
    assert_match(/wrong option limit: 0/, assert_raises(ArgumentError) { @profile.top(limit: 0) }.message)
  end

  def test_bytes_are_a_gzipped_profile_that_others_can_read
    bytes = @profile.to_pprof
    assert_equal Encoding::BINARY, bytes.encoding
    decoded = PprofDecoder.decode(bytes)
    assert_equal @profile.totals, decoded.types.map { |type| [type, decoded.total(type)] }.to_h
  end

  def test_save_and_load
    Dir.mktmpdir do |dir|
      path = Pathname(dir).join("ü x.pb.gz")
      assert_same @profile, @profile.save(path)
      assert_equal ["ü x.pb.gz"], Dir.children(dir)
      assert_equal @profile.totals, Sonde::Profile.load(path).totals
      assert_equal @profile.totals, Sonde::Profile.load(path.to_s).totals
    end
  end

  def test_load_reads_plain_bytes_and_gzip_in_several_parts
    raw = Zlib.gunzip(@profile.to_pprof)
    parts = Zlib.gzip(raw[0, 100]) + Zlib.gzip(raw[100..-1])
    [raw, parts].each { |bytes| assert_equal @profile.totals, Sonde::Profile.from_pprof(bytes).totals }
  end

  def test_what_is_no_profile_is_refused_with_a_reason
    good = @profile.to_pprof
    ["nonsense", good[0, 50], good + "x", Zlib.gzip("nonsense"), "\x1F\x8Bxx"].each do |bytes|
      assert_raises(Sonde::FormatError, bytes.inspect[0, 50]) { Sonde::Profile.from_pprof(bytes) }
    end
    Dir.mktmpdir do |dir|
      File.write("#{dir}/x", "nonsense")
      assert_match(%r{/x: }, assert_raises(Sonde::FormatError) { Sonde::Profile.load("#{dir}/x") }.message)
      assert_raises(Errno::ENOENT) { Sonde::Profile.load("#{dir}/none") }
    end
  end

  def test_merge_adds_values_and_labels
    sum = Sonde::Profile.blank
    2.times { |i| sum.merge(@profile, { "pid" => i.to_s }) }
    assert_equal @profile.totals.transform_values { |value| value * 2 }, sum.totals
    assert_equal %w[0 1], PprofDecoder.decode(sum.to_pprof).samples.map { |sample| sample.labels["pid"] }.uniq.sort
    assert_equal @profile.start, sum.start
  end

  def test_a_rule_for_the_default_type
    wall = Sonde.profile(modes: [:wall]) { sleep 0.05 }
    refute_includes wall.sample_types.map(&:first), "cpu-time"
    assert_equal wall.top(by: wall.sample_types.first.first).map(&:to_a), wall.top.map(&:to_a)
  end
end
