# frozen_string_literal: true

require "zlib"

# Reads profile.proto files, strictly: it raises on everything that `go tool pprof` refuses, and on what other readers
# refuse or show wrongly (negative values, samples without frames, text that is not UTF-8, unknown mappings).
# It shares no code with Sonde, so that a mistake in Sonde's writer is not repeated in the reading of it.
#
#   profile = PprofDecoder.decode(bytes)         # gzipped or not
#   profile.total("cpu-time") { |sample| sample.leaf.name == "Foo#bar" }
module PprofDecoder
  class Invalid < StandardError; end

  ValueType = Struct.new(:type, :unit)
  Frame = Struct.new(:name, :file, :line, :start_line)

  # frames: leaf first. values and labels: hashes by sample type and by label key.
  Sample = Struct.new(:frames, :values, :labels) do
    def leaf
      frames.first
    end

    def root
      frames.last
    end
  end

  Profile = Struct.new(:sample_types, :samples, :time_nanos, :duration_nanos, :period_type, :period,
                       :default_sample_type, :comments, :mappings, :strings, keyword_init: true) do
    def types
      sample_types.map(&:type)
    end

    # Sum of one sample type, over all samples or those for which the block is true.
    def total(type, &condition)
      raise ArgumentError, "no sample type #{type.inspect} in #{types.inspect}" unless types.include?(type)

      chosen = condition ? samples.select(&condition) : samples
      chosen.sum { |sample| sample.values[type] }
    end

    def totals
      types.map { |type| [type, total(type)] }.to_h
    end
  end

  GZIP_MAGIC = "\x1f\x8b".b.freeze
  LIMIT = 1 << 64

  module_function

  def read(path)
    decode(File.binread(path))
  end

  def decode(bytes)
    bytes = bytes.b
    raise Invalid, "empty input" if bytes.empty?

    bytes = gunzip(bytes) if bytes.start_with?(GZIP_MAGIC)
    Reader.new(Message.new(bytes)).profile
  end

  def gunzip(bytes)
    text = +"".b
    until bytes.empty? # several members make one stream
      inflate = Zlib::Inflate.new(Zlib::MAX_WBITS + 16)
      text << inflate.inflate(bytes)
      whole = inflate.finished?
      bytes = inflate.total_in < bytes.bytesize ? bytes.byteslice(inflate.total_in..-1) : ""
      inflate.reset # a close in the middle would warn
      inflate.close
      raise Invalid, "the gzip stream ends in the middle" unless whole
    end
    text
  rescue Zlib::Error => e
    raise Invalid, "not a gzip stream: #{e.message}"
  end

  # The fields of one protobuf message, by number, in the order in which they came.
  class Message
    VARINT = 0
    BYTES = 2

    def initialize(bytes)
      @bytes = bytes
      @at = 0
      @fields = Hash.new { |hash, number| hash[number] = [] }
      read_field while @at < @bytes.bytesize
    end

    # The last value of a field that may occur once, as an unsigned number.
    def number(field)
      value = numbers(field).last
      value.nil? ? 0 : value
    end

    def signed(field)
      PprofDecoder.signed(number(field))
    end

    # All values of a repeated integer, packed or not.
    def numbers(field)
      @fields.fetch(field, []).flat_map { |type, value| type == VARINT ? [value] : unpack(value) }
    end

    def messages(field)
      byte_strings(field).map { |bytes| Message.new(bytes) }
    end

    def byte_strings(field)
      @fields.fetch(field, []).map do |type, value|
        raise Invalid, "field #{field} should be a string or a message" unless type == BYTES

        value
      end
    end

    def count(field)
      @fields.fetch(field, []).size
    end

    private

    def read_field
      key = varint
      number = key >> 3
      raise Invalid, "field number 0" if number.zero?

      case key & 7
      when VARINT then @fields[number] << [VARINT, varint]
      when BYTES then @fields[number] << [BYTES, take(varint)]
      else raise Invalid, "field #{number} has wire type #{key & 7}; profile.proto has only 0 and 2"
      end
    end

    def varint
      value = shift = 0
      loop do
        byte = @bytes.getbyte(@at)
        raise Invalid, "ends in the middle of a number" if byte.nil?

        @at += 1
        value |= (byte & 127) << shift
        break if byte < 128

        shift += 7
        raise Invalid, "a number of more than ten bytes" if shift > 63
      end
      raise Invalid, "a number of more than 64 bits" if value >= LIMIT

      value
    end

    def take(length)
      raise Invalid, "ends in the middle of a field" if @at + length > @bytes.bytesize

      @at += length
      @bytes.byteslice(@at - length, length)
    end

    def unpack(bytes)
      list = []
      value = shift = 0
      bytes.each_byte do |byte|
        raise Invalid, "a number of more than ten bytes" if shift > 63

        value |= (byte & 127) << shift
        shift += 7
        next if byte >= 128
        raise Invalid, "a number of more than 64 bits" if value >= LIMIT

        list << value
        value = shift = 0
      end
      raise Invalid, "a packed list ends in the middle of a number" unless shift.zero?

      list
    end
  end

  def signed(number)
    number[63] == 1 ? number - LIMIT : number
  end

  # Field numbers of profile.proto, and what must hold between its tables.
  class Reader
    def initialize(message)
      @message = message
    end

    def profile
      @strings = strings
      @sample_types = @message.messages(1).map { |m| value_type(m) }
      @mappings = mappings
      @functions = functions
      @locations = locations
      samples = @message.messages(2).map { |m| sample(m) }
      check_header
      Profile.new(sample_types: @sample_types, samples: samples, time_nanos: @message.signed(9),
                  duration_nanos: @message.signed(10), period_type: period_type, period: @message.signed(12),
                  default_sample_type: default_sample_type, strings: @strings, mappings: @mappings.values,
                  comments: @message.numbers(13).map { |index| string(index) })
    end

    private

    def strings
      list = @message.byte_strings(6).map { |bytes| bytes.dup.force_encoding(Encoding::UTF_8) }
      raise Invalid, "no string table" if list.empty?
      raise Invalid, "string 0 is #{list[0].inspect}, not empty" unless list[0].empty?
      raise Invalid, "the empty string more than once" if list.count("") > 1

      bad = list.find { |text| !text.valid_encoding? }
      raise Invalid, "a string is not UTF-8: #{bad.b.inspect}" if bad

      list.map(&:freeze)
    end

    def string(index)
      raise Invalid, "string #{index} of #{@strings.size}" if index >= @strings.size

      @strings[index]
    end

    def value_type(message)
      ValueType.new(string(message.number(1)), string(message.number(2)))
    end

    def period_type
      message = @message.messages(11).last
      message && value_type(message)
    end

    # Unset is allowed; a name that is no sample type is silently ignored by viewers, so it is a mistake of the writer.
    def default_sample_type
      name = string(@message.number(14))
      return nil if name.empty?
      raise Invalid, "default sample type #{name.inspect} is none of the sample types" unless
        @sample_types.any? { |type| type.type == name }

      name
    end

    def check_header
      raise Invalid, "missing sample type information" if @sample_types.empty?
      raise Invalid, "concatenated profiles: time_nanos comes #{@message.count(9)} times" if @message.count(9) > 1

      names = @sample_types.map(&:type)
      raise Invalid, "two sample types with one name: #{names.inspect}" if names.uniq.size < names.size
      raise Invalid, "negative time or duration" if @message.signed(9).negative? || @message.signed(10).negative?
      raise Invalid, "negative period" if @message.signed(12).negative?

      [7, 8, 15].each { |field| string(@message.number(field)) } # drop_frames, keep_frames, doc_url
    end

    def by_id(field, what)
      @message.messages(field).each_with_object({}) do |message, table|
        id = message.number(1)
        raise Invalid, "found a #{what} with the reserved id 0" if id.zero?
        raise Invalid, "more than one #{what} with id #{id}" if table.key?(id)

        table[id] = yield(message)
      end
    end

    def mappings
      by_id(3, "mapping") { |m| { filename: string(m.number(5)), build_id: string(m.number(6)) } }
    end

    # pprof demangles a system_name that equals the name, and loses parts of names such as "<main>".
    def functions
      by_id(5, "function") do |m|
        name = string(m.number(2))
        raise Invalid, "system_name set to the name #{name.inspect}: pprof would demangle it" if
          !name.empty? && string(m.number(3)) == name
        raise Invalid, "a function with neither name nor file" if name.empty? && string(m.number(4)).empty?

        [name, string(m.number(4)), m.signed(5)]
      end
    end

    def locations
      by_id(4, "location") do |m|
        mapping = m.number(2)
        raise Invalid, "a location with the unknown mapping #{mapping}" unless mapping.zero? || @mappings.key?(mapping)

        lines = m.messages(4)
        raise Invalid, "location #{m.number(1)} has no line" if lines.empty?

        lines.map { |line| frame(line, m.number(1)) }
      end
    end

    def frame(line, location)
      function = @functions[line.number(1)]
      raise Invalid, "location #{location} has a line with an unknown function" unless function
      raise Invalid, "location #{location} has a negative line number" if line.signed(2).negative?

      Frame.new(function[0], function[1], line.signed(2), function[2]).freeze
    end

    def sample(message)
      ids = message.numbers(1)
      raise Invalid, "a sample without locations" if ids.empty?

      frames = ids.flat_map { |id| @locations[id] || raise(Invalid, "a sample with the unknown location #{id}") }
      Sample.new(frames, values(message), labels(message))
    end

    def values(message)
      list = message.numbers(2).map { |value| PprofDecoder.signed(value) }
      unless list.size == @sample_types.size
        raise Invalid, "a sample has #{list.size} values for #{@sample_types.size} types"
      end
      raise Invalid, "a negative value: #{list.inspect}" if list.any?(&:negative?)

      @sample_types.map(&:type).zip(list).to_h
    end

    def labels(message)
      message.messages(3).each_with_object({}) do |m, labels|
        key = string(m.number(1))
        raise Invalid, "a label without a key" if key.empty?
        raise Invalid, "two labels #{key.inspect} on one sample" if labels.key?(key)

        labels[key] = label_value(key, m)
      end
    end

    def label_value(key, message)
      text = string(message.number(2))
      unit = string(message.number(4))
      number = message.signed(3)
      raise Invalid, "label #{key.inspect} has both text and a number" if !text.empty? && !number.zero?
      # Readers drop such a label without a word, so a writer must not write one.
      raise Invalid, "label #{key.inspect} has no value" if text.empty? && number.zero? && unit.empty?

      text.empty? ? number : text
    end
  end
end
