# frozen_string_literal: true

# Makes pprof files by hand, for tests that need a certain profile. Shares no code with Sonde.
#
#   builder = PprofBuilder.new([%w[cpu-time nanoseconds]])
#   builder.sample([["leaf", "/a.rb", 3], ["root", "/a.rb", 9]], [20], { "thread id" => "1", "span id" => 77 })
#   builder.bytes
class PprofBuilder
  # The wire format of protocol buffers.
  module Wire
    def varint(number)
      number &= (1 << 64) - 1
      bytes = []
      while number > 127
        bytes << (number & 127 | 128)
        number >>= 7
      end
      (bytes << number).pack("C*")
    end

    # field(1, 5) is a number, field(1, "bytes") a string or message.
    def field(number, value)
      return varint(number << 3) + varint(value) if value.is_a?(Integer)

      varint(number << 3 | 2) + varint(value.bytesize) + value.b
    end
  end
  include Wire

  # types: [[type, unit], ...]
  def initialize(types, time: 1_700_000_000_000_000_000, duration: 60_000_000_000, period: 10_000_000)
    @types = types
    @header = [time, duration, period]
    @strings = { "" => 0 }
    @functions = {}
    @locations = {}
    @samples = []
  end

  # frames, leaf first: [[name, file, line], ...]. Labels are texts or numbers.
  def sample(frames, values, labels = {})
    ids = frames.map { |name, file, line| location(name, file, line) }
    parts = [packed(1, ids), packed(2, values)]
    labels.each do |key, value|
      parts << field(3, value.is_a?(Integer) ? field(1, text(key)) + field(3, value)
                                             : field(1, text(key)) + field(2, text(value)))
    end
    @samples << field(2, parts.join)
    self
  end

  def bytes
    types = @types.map { |type, unit| field(1, value_type(type, unit)) }
    period = field(11, value_type(*@types.first))
    functions = @functions.map do |(name, file), id|
      field(5, field(1, id) + field(2, text(name)) + field(4, text(file)))
    end
    locations = @locations.map do |(function, line), id|
      field(4, field(1, id) + field(4, field(1, function) + field(2, line)))
    end
    strings = @strings.keys.map { |string| field(6, string.b) }
    time, duration, length = @header
    (types + @samples + locations + functions + strings +
      [field(9, time), field(10, duration), period, field(12, length)]).join
  end

  private

  def text(string)
    @strings[string] ||= @strings.size
  end

  def location(name, file, line)
    function = @functions[[name, file]] ||= @functions.size + 1
    @locations[[function, line]] ||= @locations.size + 1
  end

  def value_type(type, unit)
    field(1, text(type)) + field(2, text(unit))
  end

  def packed(number, values)
    field(number, values.map { |value| varint(value) }.join.b)
  end
end
