# frozen_string_literal: true

require_relative "../sonde"

module Sonde
  # The command `sonde`: finds the command's class, runs it, and answers its exit status.
  module CLI
    # name => [constant, one line of help]; the file is cli/<name>.rb.
    COMMANDS = {
      "run" => [:Run, "run a program and profile it"],
      "top" => [:Top, "show the hottest methods of profiles"],
      "doctor" => [:Doctor, "show what works here, and what does not and why"],
      "version" => [:Version, "show the version"],
      "help" => [:Help, "explain a command"]
    }.freeze

    ALIASES = { "-h" => "help", "--help" => "help", "-v" => "version", "--version" => "version" }.freeze

    USAGE = 2

    # Something the user can mend; said in one line, without a backtrace.
    class Failure < StandardError
      attr_reader :status

      def initialize(message, status = 1)
        super(message)
        @status = status
      end
    end

    class << self
      # @return [Integer] exit status
      def main(arguments, out: $stdout, err: $stderr)
        name, *rest = arguments
        name = ALIASES.fetch(name, name) || "help"
        command(name, out, err).run(rest)
      rescue Failure => e
        err.puts "sonde: #{e.message}"
        e.status
      rescue Interrupt
        130
      rescue Errno::EPIPE
        # Whoever read our output has seen enough, as `head` does.
        quiet_exit
      end

      def command(name, out, err)
        constant, = COMMANDS[name]
        raise Failure.new("unknown command #{name} (there are: #{COMMANDS.keys.join(", ")})", USAGE) if constant.nil?

        require_relative "cli/#{name}"
        const_get(constant).new(out, err)
      end

      private

      # Without this Ruby would try to flush the broken pipe at exit, and complain.
      def quiet_exit
        $stdout.reopen(File::NULL, "w")
        1
      end
    end
  end
end
