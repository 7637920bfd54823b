# frozen_string_literal: true

module Sonde
  module Export
    # The little of protocol buffers that a few small messages around a profile need.
    module Proto
      module_function

      def bytes(field, value)
        varint(field << 3 | 2) << varint(value.bytesize) << value.b
      end

      def varint(number)
        result = []
        while number > 127
          result << (number & 127 | 128)
          number >>= 7
        end
        (result << number).pack("C*")
      end

      # { field => last value }: an Integer or a String. What is damaged ends the reading.
      def parse(bytes)
        fields = {}
        position = 0
        while position < bytes.bytesize
          tag, position = read_varint(bytes, position)
          number, position = read_varint(bytes, position)
          break if number.nil? || ![0, 2].include?(tag & 7)

          if tag & 7 == 2
            fields[tag >> 3] = bytes.byteslice(position, number)
            position += number
          else
            fields[tag >> 3] = number
          end
        end
        fields
      end

      def read_varint(bytes, position)
        number = shift = 0
        loop do
          byte = bytes.getbyte(position)
          return [nil, position] if byte.nil? || shift > 63

          number |= (byte & 127) << shift
          position += 1
          shift += 7
          return [number, position] if byte < 128
        end
      end
    end
  end
end
