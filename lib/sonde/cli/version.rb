# frozen_string_literal: true

require_relative "command"

module Sonde
  module CLI
    # sonde version
    class Version < Command
      def usage
        "version"
      end

      def call(_arguments)
        out.puts "sonde #{VERSION} (#{RUBY_DESCRIPTION})"
        0
      end

      private

      def define(parser)
        parser.separator("")
      end
    end
  end
end
