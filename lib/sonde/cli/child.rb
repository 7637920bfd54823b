# frozen_string_literal: true

module Sonde
  module CLI
    # A program run in our place: our standard streams, our signals, and in the end our exit status are its own.
    #
    # Signals. Those that are meant for the program reach us as well, or only us: a terminal (or `kill` with a negative
    # number) sends to the whole process group, so the program has got the signal already; `kill` with our number sends
    # to us alone, so we must pass it on. Passing on what it already has would be a second Ctrl-C, which many programs
    # take as "stop at once". To tell the two apart there is a witness: another process of our group, which ignores
    # nothing and does nothing. If it has got the signal too (it is dead, or about to be), the group has.
    class Child
      SIGNALS = %w[INT TERM HUP QUIT USR1 USR2 ALRM].freeze

      # A group's signal reaches its members one after the other, but within microseconds.
      PATIENCE = 0.02

      # CPU time of the program and of all processes that were waited for below it, by the kernel; nanoseconds.
      attr_reader :cpu_time

      # Runs it to its end.
      #
      # @return [Process::Status]
      # @raise [SystemCallError] if it cannot be started
      def run(environment, command)
        @pid = @witness = nil
        @early = []
        listen
        @witness = Witness.new
        name, *arguments = command
        # The array form never goes through a shell.
        @pid = Process.spawn(environment, [name, name], *arguments)
        @early.each { |signal| deliver(signal) }
        before = cpu_of_children
        _, status = Process.wait2(@pid)
        @cpu_time = cpu_of_children - before
        status
      ensure
        @pid = nil
        @witness&.dismiss
      end

      # Ends this process as the program ended: with its status, or by the signal that ended it. Answers the status
      # where that cannot be done.
      def self.end_like(status)
        return status.exitstatus unless status.signaled?

        signal = Signal.signame(status.termsig)
        # One core file, the program's, is enough.
        Process.setrlimit(:CORE, 0)
        $stderr.flush
        begin
          trap(signal, "SYSTEM_DEFAULT") unless signal == "KILL"
          Process.kill(signal, Process.pid)
          sleep 1
        rescue ArgumentError
          # Ruby keeps SEGV and a few others to itself. A shell does not.
          exec("/bin/sh", "-c", "kill -#{status.termsig} $$")
        end
        128 + status.termsig
      end

      private

      def cpu_of_children
        times = Process.times
        ((times.cutime + times.cstime) * 1e9).round
      end

      # What was ignored when we began stays ignored, for us and for the program: that is how nohup works.
      def listen
        SIGNALS.each do |signal|
          before = trap(signal) { @pid ? pass_on(signal) : @early << signal }
          trap(signal, "IGNORE") if before == "IGNORE"
        end
      end

      def pass_on(signal)
        deliver(signal) unless own_group? && @witness.got?(signal)
      end

      # A program may have left our group; what the group gets, it then does not.
      def own_group?
        Process.getpgid(@pid) == Process.getpgrp
      rescue Errno::ESRCH
        true
      end

      def deliver(signal)
        Process.kill(signal, @pid) if @pid
      rescue Errno::ESRCH
        nil # it ended in this instant
      end

      # A `cat` that waits for input that never comes, and ends with us in any case.
      class Witness
        def initialize
          @pid = @input = nil
          call
        end

        # Whether the signal that we got went to the whole group.
        def got?(signal)
          return terminal_signal?(signal) if @pid.nil?

          sleep PATIENCE
          return false unless dead? || pending?(signal)

          dismiss
          call
          true
        end

        def dismiss
          @input&.close
          return if @pid.nil?

          Process.kill("KILL", @pid)
          Process.wait(@pid)
          @pid = nil
        end

        private

        def call
          input, @input = IO.pipe
          @pid = Process.spawn("cat", in: input, out: File::NULL, err: File::NULL, rlimit_core: 0)
        rescue SystemCallError
          @pid = nil
        ensure
          input&.close
        end

        def dead?
          return false unless Process.wait(@pid, Process::WNOHANG)

          @pid = nil
          true
        end

        # Sent, but on a busy machine not yet acted upon.
        def pending?(signal)
          pending = File.read("/proc/#{@pid}/status")[/^ShdPnd:\s*(\h+)/, 1]
          pending.to_s.to_i(16)[Signal.list[signal] - 1] == 1
        rescue SystemCallError
          false
        end

        # Without a witness, the likelier case.
        def terminal_signal?(signal)
          %w[INT QUIT].include?(signal)
        end
      end
      private_constant :Witness
    end
  end
end
