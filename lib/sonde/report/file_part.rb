# frozen_string_literal: true

module Sonde
  module Report
    # What is to become one file: its name, and what is in it.
    FilePart = Struct.new(:name, :bytes) do
      def bytesize
        bytes.bytesize
      end
    end
  end
end
