# frozen_string_literal: true

require "tmpdir"
require_relative "pprof_decoder"

# A second opinion: google-protobuf with the official schema, where both are installed. The Ruby class is generated from
# the schema each time, so that nothing generated has to be kept in step.
module OfficialPprof
  SCHEMA = File.expand_path("profile.proto", __dir__)

  module_function

  # Why it cannot be used here, or nil.
  def missing
    return "#{SCHEMA} is missing" unless File.exist?(SCHEMA)
    return "protoc (Debian: protobuf-compiler) is not installed" unless system("protoc", "--version", out: File::NULL,
                                                                                                     err: File::NULL)

    require "google/protobuf"
    nil
  rescue LoadError
    "the gem google-protobuf is not installed"
  end

  def message_class
    return Perftools::Profiles::Profile if defined?(Perftools::Profiles::Profile)

    Dir.mktmpdir("sonde-proto") do |dir|
      system("protoc", "--proto_path=#{File.dirname(SCHEMA)}", "--ruby_out=#{dir}", SCHEMA, exception: true)
      require File.join(dir, "profile_pb.rb")
    end
    Perftools::Profiles::Profile
  end

  # What PprofDecoder and the official schema see differently in these bytes; empty when they agree.
  def differences(bytes)
    ours = PprofDecoder.decode(bytes)
    raw = bytes.b.start_with?(PprofDecoder::GZIP_MAGIC) ? Zlib.gunzip(bytes) : bytes
    theirs = message_class.decode(raw)
    expected(theirs).reject { |name, value| value == actual(ours)[name] }.keys
  end

  def expected(message)
    functions = message.function.map { |f| [f.id, f] }.to_h
    locations = message.location.map { |l| [l.id, l] }.to_h
    text = message.string_table.to_a
    {
      types: message.sample_type.map { |t| [text[t.type], text[t.unit]] },
      header: [message.time_nanos, message.duration_nanos, message.period],
      samples: message.sample.map do |s|
        frames = s.location_id.flat_map do |id|
          locations.fetch(id).line.map { |l| [text[functions.fetch(l.function_id).name], l.line] }
        end
        [frames, s.value.to_a, s.label.map { |l| [text[l.key], l.str.zero? ? l.num : text[l.str]] }.sort_by(&:first)]
      end
    }
  end

  def actual(profile)
    {
      types: profile.sample_types.map(&:to_a),
      header: [profile.time_nanos, profile.duration_nanos, profile.period],
      samples: profile.samples.map do |s|
        [s.frames.map { |f| [f.name, f.line] }, s.values.values, s.labels.sort_by(&:first)]
      end
    }
  end
end
