# frozen_string_literal: true

require "optparse"

module Sonde
  module CLI
    # What all commands share. A command has `usage` (one line), `define(parser)` for its options, and
    # `call(arguments)`, which answers the exit status.
    class Command
      attr_reader :out, :err

      def initialize(out, err)
        @out = out
        @err = err
        @options = {}
      end

      def run(arguments)
        # --help ends it, wherever it stands.
        catch(:help) { return call(parse(arguments)) }
        0
      rescue OptionParser::ParseError => e
        raise Failure.new("#{e.message}\n#{usage_line}", USAGE)
      end

      def help
        parser.help
      end

      private

      # Answers what is left when the options are taken away. Options come first: what follows belongs to a program, or
      # is a file.
      def parse(arguments)
        parser.order(arguments)
      end

      def parser
        OptionParser.new do |parser|
          parser.banner = usage_line
          define(parser)
          parser.on("-h", "--help", "show this") do
            out.puts parser.help
            throw :help
          end
        end
      end

      def usage_line
        "usage: sonde #{usage}"
      end

      def usage_error(message)
        raise Failure.new("#{message}\n#{usage_line}", USAGE)
      end
    end
  end
end
