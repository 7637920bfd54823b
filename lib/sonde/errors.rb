# frozen_string_literal: true

module Sonde
  # What Sonde raises, except for wrong arguments (ArgumentError) and files that cannot be read or written
  # (SystemCallError).
  class Error < StandardError; end

  # The bytes are not a profile, or a damaged one.
  class FormatError < Error; end
end
