# frozen_string_literal: true

require "tmpdir"

# OTLP bodies as the official schema sees them (google-protobuf and protoc, where both are installed), checked against
# the rules that the schema's comments state and receivers insist on.
module OfficialOtlp
  ROOT = File.expand_path("otlp", __dir__)
  SERVICE = "opentelemetry/proto/collector/profiles/v1development/profiles_service.proto"
  FILES = [SERVICE, "opentelemetry/proto/profiles/v1development/profiles.proto",
           "opentelemetry/proto/common/v1/common.proto", "opentelemetry/proto/resource/v1/resource.proto"].freeze

  module_function

  # Why it cannot be used here, or nil.
  def missing
    return "protoc (Debian: protobuf-compiler) is not installed" unless system("protoc", "--version", out: File::NULL,
                                                                                                     err: File::NULL)

    require "google/protobuf"
    nil
  rescue LoadError
    "the gem google-protobuf is not installed"
  end

  def request_class
    @request_class ||= Dir.mktmpdir("sonde-otlp") do |dir|
      system("protoc", "-I", ROOT, "--ruby_out=#{dir}", *FILES, exception: true)
      $LOAD_PATH.unshift(dir)
      require File.join(dir, SERVICE.sub(".proto", "_pb.rb"))
      $LOAD_PATH.shift
      Google::Protobuf::DescriptorPool.generated_pool
                                      .lookup("opentelemetry.proto.collector.profiles.v1development." \
                                              "ExportProfilesServiceRequest").msgclass
    end
  end

  def decode(bytes)
    request_class.decode(bytes)
  end

  def text(request, index)
    request.dictionary.string_table.fetch(index)
  end

  # { type => [[[frame names, leaf first], { attribute => value }, value, link or nil], ...] }
  def samples(request)
    d = request.dictionary
    profiles(request).map do |profile|
      rows = profile.samples.map do |sample|
        [frames(d, sample.stack_index), attributes(d, sample.attribute_indices), sample.values.to_a,
         sample.link_index.zero? ? nil : d.link_table[sample.link_index]]
      end
      [d.string_table[profile.sample_type.type_strindex], rows]
    end.to_h
  end

  # Its attributes, of the first one.
  def resource(request)
    request.resource_profiles.first.resource.attributes.map { |a| [a.key, a.value.public_send(a.value.value)] }.to_h
  end

  def profiles(request)
    request.resource_profiles.flat_map { |r| r.scope_profiles.flat_map { |s| s.profiles.to_a } }
  end

  def frames(dictionary, stack)
    dictionary.stack_table[stack].location_indices.map do |index|
      line = dictionary.location_table[index].lines.first
      [dictionary.string_table[dictionary.function_table[line.function_index].name_strindex], line.line]
    end
  end

  def attributes(dictionary, indices)
    indices.map do |index|
      attribute = dictionary.attribute_table[index]
      [dictionary.string_table[attribute.key_strindex], attribute.value.public_send(attribute.value.value)]
    end.to_h
  end

  # What is wrong with it; empty when all is right.
  def violations(request)
    d = request.dictionary
    tables = { mapping: d.mapping_table, location: d.location_table, function: d.function_table, link: d.link_table,
               string: d.string_table, attribute: d.attribute_table, stack: d.stack_table }
    wrong = tables.flat_map { |name, table| of_table(name, table.to_a) }
    wrong + orphans(request, tables) + profiles(request).flat_map { |profile| of_profile(d, profile) } +
      d.attribute_table.drop(1).select { |a| a.value.nil? || a.value.value.nil? }.map { |a| "no value in #{a.inspect}" }
  end

  def of_table(name, elements)
    return ["#{name} table is missing"] if elements.empty?

    zero = elements.first
    wrong = zero == (name == :string ? "" : zero.class.new) ? [] : ["element 0 of #{name} is #{zero.inspect}"]
    bytes = elements.map { |e| name == :string ? e : e.to_proto }
    wrong << "duplicates in #{name}" unless bytes.uniq.size == bytes.size
    wrong << "a link without full ids" if name == :link && elements.drop(1).any? do |link|
      link.trace_id.bytesize != 16 || link.span_id.bytesize != 8
    end
    wrong
  end

  def of_profile(dictionary, profile)
    wrong = []
    wrong << "no samples" if profile.samples.empty?
    wrong << "no period type" if profile.period_type.nil? || profile.period_type.type_strindex.zero?
    wrong << "profile id #{profile.profile_id.inspect}" unless profile.profile_id.bytesize == 16
    identities = profile.samples.map { |s| [s.stack_index, s.attribute_indices.to_a.sort, s.link_index] }
    wrong << "two samples with one identity" unless identities.uniq.size == identities.size
    wrong << "not one value" unless profile.samples.all? { |s| s.values.size == 1 && s.timestamps_unix_nano.empty? }
    type = dictionary.string_table[profile.sample_type.type_strindex]
    wrong << "type #{type.inspect}" if type.empty? || type.include?("-")
    wrong << "keys twice" unless profile.samples.all? do |s|
      keys = s.attribute_indices.map { |i| dictionary.attribute_table[i].key_strindex }
      keys.uniq.size == keys.size
    end
    wrong
  end

  def orphans(request, tables)
    all = profiles(request)
    samples = all.flat_map { |profile| profile.samples.to_a }
    used = { stack: samples.map(&:stack_index), link: samples.map(&:link_index) }
    used[:location] = tables[:stack].flat_map { |stack| stack.location_indices.to_a }
    used[:function] = tables[:location].flat_map { |location| location.lines.map(&:function_index) }
    used[:attribute] = (samples + all).flat_map { |s| s.attribute_indices.to_a } +
                       tables[:location].flat_map { |location| location.attribute_indices.to_a }
    types = all.flat_map { |profile| [profile.sample_type, profile.period_type] }
    used[:string] = tables[:function].flat_map { |f| [f.name_strindex, f.filename_strindex] } +
                    tables[:attribute].flat_map { |a| [a.key_strindex, a.unit_strindex] } +
                    types.flat_map { |t| [t.type_strindex, t.unit_strindex] }
    used.flat_map do |name, indices|
      beyond = indices.any? { |index| index >= tables[name].size || index.negative? }
      unused = (1...tables[name].size).to_a - indices
      [("an index beyond #{name}" if beyond), ("orphans in #{name}: #{unused}" unless unused.empty?)].compact
    end
  end
end
