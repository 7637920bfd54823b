# frozen_string_literal: true

module Sonde
  # Stands in for a native profile where nothing could be measured: the same methods, no samples, and a comment that
  # says why.
  class EmptyProfile
    attr_reader :start_ns, :duration_ns, :comments

    def initialize(start_ns, duration_ns, reason)
      @start_ns = start_ns
      @duration_ns = duration_ns
      @comments = [reason].freeze
    end

    def sample_types
      []
    end

    def totals
      {}
    end

    def sample_count
      0
    end

    def top(_type, _limit, _cumulative)
      []
    end

    # profile.proto by hand: the string table ("" first, as it demands), the times, and the comment.
    def encode
      reason = comments.first.b
      "\x32\x00".b << "\x32" << varint(reason.bytesize) << reason <<
        "\x48" << varint(start_ns) << "\x50" << varint(duration_ns) << "\x68\x01"
    end

    private

    def varint(number)
      bytes = []
      while number > 127
        bytes << (number & 127 | 128)
        number >>= 7
      end
      (bytes << number).pack("C*")
    end
  end
end
