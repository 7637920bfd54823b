# frozen_string_literal: true

require_relative "command"

module Sonde
  module CLI
    # sonde help [COMMAND]
    class Help < Command
      def usage
        "help [COMMAND]"
      end

      def call(arguments)
        name, = arguments
        out.puts(name ? CLI.command(name, out, err).help : overview)
        0
      end

      private

      def define(parser)
        parser.separator("")
      end

      def overview
        lines = COMMANDS.map { |name, (_, summary)| format("  %-9s %s", name, summary) }
        <<~TEXT
          usage: sonde COMMAND [OPTIONS] ...

          #{lines.join("\n")}

          sonde help COMMAND shows the options of a command.

          For example:
            sonde run -- bundle exec rspec
            sonde top --by wall-time sonde-bundle-1234.pb.gz
        TEXT
      end
    end
  end
end
