# frozen_string_literal: true

module Sonde
  module Report
    # Why a profile was not taken. An exporter raises it; nobody else sees it but in words.
    class Failure < StandardError
      # Seconds that the other side asks us to wait, or nil.
      attr_reader :after

      # again: whether another attempt makes sense, and is allowed by the protocol.
      def initialize(message, again: false, after: nil)
        super(message)
        @again = again
        @after = after
      end

      def again?
        @again
      end
    end
  end
end
