# frozen_string_literal: true

require "test_helper"
require "support/official_otlp"
require "support/pprof_decoder"
require "support/pprof_builder"
require "sonde/export/otlp"

# Sonde's OTLP bodies against the official schema, and against the same profile as pprof.
class OtlpTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
    reason = OfficialOtlp.missing
    skip reason if reason
  end

  def otlp(profile, resource = {})
    request = OfficialOtlp.decode(profile.to_otlp(resource: resource))
    assert_empty OfficialOtlp.violations(request)
    request
  end

  # A profile by hand, as Sonde itself would name things.
  def example
    builder = PprofBuilder.new([%w[cpu-time nanoseconds], %w[wall-time nanoseconds], %w[alloc-size bytes]])
    builder.sample([["Foo#bar", "/a.rb", 12], ["<main>", "/a.rb", 20]], [20, 30, 0],
                   { "thread id" => "77", "thread name" => "main", "trace id" => "1122334455667788" * 2,
                     "span id" => "00000000000000ab", "user" => "ada" })
    builder.sample([["Array#sort", "<cfunc>", 0], ["<main>", "/a.rb", 20]], [0, 5, 7],
                   { "thread id" => "x7", "span id" => "00000000000000ab" })
    builder.sample([["(garbage collection)", "", 0]], [0, 1, 0], {})
    builder.sample([["nowhere", "/unused.rb", 1]], [0, 0, 0], { "unused" => "label" })
    Sonde::Profile.from_pprof(builder.bytes)
  end

  def test_a_profile_for_each_type_that_has_values
    samples = OfficialOtlp.samples(otlp(example))
    assert_equal %w[cpu wall allocated_space], samples.keys
    frames, attributes, values, link = samples["cpu"].first
    assert_equal [["Foo#bar", 12], ["<main>", 20]], frames
    assert_equal({ "thread.id" => 77, "thread.name" => "main", "user" => "ada" }, attributes)
    assert_equal [20], values
    assert_equal ["1122334455667788" * 2, "00000000000000ab"],
                 [link.trace_id.unpack1("H*"), link.span_id.unpack1("H*")]
    assert_equal 1, samples["cpu"].size
    assert_equal [30, 5, 1], samples["wall"].map { |sample| sample[2].first }
  end

  # A span without its trace is no link; a thread id that is no number stays a text.
  def test_what_is_not_complete_stays_an_attribute
    sample = OfficialOtlp.samples(otlp(example))["allocated_space"].first
    assert_equal({ "thread.id" => "x7", "span_id" => "00000000000000ab" }, sample[1])
    assert_nil sample[3]
  end

  def test_frames_say_what_they_are
    request = otlp(example)
    d = request.dictionary
    kinds = d.location_table.drop(1).map do |location|
      name = d.string_table[d.function_table[location.lines.first.function_index].name_strindex]
      [name, OfficialOtlp.attributes(d, location.attribute_indices)["profile.frame.type"]]
    end.to_h
    assert_equal({ "Foo#bar" => "ruby", "<main>" => "ruby", "Array#sort" => "native", "(garbage collection)" => nil },
                 kinds)
    refute_includes d.string_table.to_a, "nowhere"
    refute_includes d.string_table.to_a, "unused"
  end

  def test_resource_and_scope
    request = otlp(example, "service.name" => "shop", "process.pid" => 0)
    assert_equal({ "service.name" => "shop", "process.pid" => 0 }, OfficialOtlp.resource(request))
    scope = request.resource_profiles.first.scope_profiles.first.scope
    assert_equal ["sonde", Sonde::VERSION], [scope.name, scope.version]
  end

  def test_a_real_profile_says_the_same_as_its_pprof_file
    profile = Sonde.profile(rate: 500) do
      Thread.new { burn(0.1) }.join
      burn(0.2)
      "x".b * 100
    end
    pprof = PprofDecoder.decode(profile.to_pprof)
    request = otlp(profile)
    samples = OfficialOtlp.samples(request)
    { "cpu" => "cpu-time", "wall" => "wall-time" }.each do |otlp, type|
      expected = pprof.samples.map do |sample|
        [sample.frames.map { |f| [f.name, f.line] }, sample.labels["thread name"], sample.values[type]]
      end
      actual = samples[otlp].map { |frames, attributes, values, _| [frames, attributes["thread.name"], values.first] }
      assert_equal sums(expected), sums(actual)
    end
    first = OfficialOtlp.profiles(request).first
    assert_equal [pprof.time_nanos, pprof.duration_nanos], [first.time_unix_nano, first.duration_nano]
    assert_equal pprof.period, first.period
  end

  def test_what_is_too_large_for_one_request_is_split_into_several
    profile = large_example
    most = profile.to_otlp.bytesize / 5
    environment = Sonde::Report::Environment.new({ "OTEL_EXPORTER_OTLP_COMPRESSION" => "none" })
    exporter = Sonde::Export::Otlp.new(environment, "http://localhost:1", most: most)
    parts = exporter.encode(Sonde::Report::Flushed.new(profile, 0))
    assert_operator parts.size, :>=, 5
    assert_operator parts.map(&:bytesize).max, :<=, most
    requests = parts.map { |part| OfficialOtlp.decode(part) }
    requests.each { |request| assert_empty OfficialOtlp.violations(request) }
    ids = requests.flat_map { |request| OfficialOtlp.profiles(request).map(&:profile_id) }
    assert_equal ids.size, ids.uniq.size
    whole = OfficialOtlp.samples(otlp(profile))
    whole.each do |type, samples|
      assert_equal samples.sort_by(&:inspect),
                   requests.flat_map { |request| OfficialOtlp.samples(request)[type] || [] }.sort_by(&:inspect)
    end
    assert_equal %w[allocated_space cpu wall], whole.keys.sort
  end

  def test_a_sample_that_is_too_large_alone_is_said
    environment = Sonde::Report::Environment.new({})
    exporter = Sonde::Export::Otlp.new(environment, "http://localhost:1", most: 100)
    error = assert_raises(Sonde::Error) { exporter.encode(Sonde::Report::Flushed.new(large_example, 0)) }
    assert_match(/one sample alone has \d+ bytes, more than the 100 of a request/, error.message)
  end

  def large_example
    builder = PprofBuilder.new([%w[cpu-time nanoseconds], %w[wall-time nanoseconds], %w[alloc-size bytes]])
    200.times do |i|
      builder.sample([["Foo#bar#{i}", "/a.rb", i + 1], ["<main>", "/a.rb", 20]], [i, 30, i.odd? ? 0 : 8],
                     { "thread id" => "77", "thread name" => "main", "user" => "user #{i % 7}" })
    end
    Sonde::Profile.from_pprof(builder.bytes)
  end

  def test_an_empty_profile_is_a_valid_body
    assert_empty OfficialOtlp.profiles(otlp(Sonde::Profile.blank))
  end

  private

  def sums(rows)
    rows.group_by { |frames, thread, _| [frames, thread] }.transform_values { |all| all.sum(&:last) }
        .reject { |_, sum| sum.zero? }
  end
end
