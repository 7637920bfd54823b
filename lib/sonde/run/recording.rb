# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"
require_relative "../configuration"
require_relative "../session"

module Sonde
  module Run
    # The profile of one process below `sonde run`, from its first instant to its last.
    #
    #  1. At boot: open a window (or start a thread that does, for --delay and --duration).
    #  2. At exit: close it, and write the bytes into the directory that `sonde run` made, as <pid>-<instant>.pb. They
    #     are not compressed: `sonde run` reads them, so that this process needs no zlib.
    #  3. Where that is impossible: write one sentence there, <pid>-<instant>.reason.
    #
    # It never prints and never raises. A forked child inherits the at_exit block but not the profile: it does nothing.
    class Recording
      # Programs (and the gems that test them) replace these constants by others. These are the real ones.
      File = ::File
      Process = ::Process
      Thread = ::Thread

      # During the few milliseconds of writing at the very end, these must not end the process. They are sent again
      # after it.
      HELD_SIGNALS = %w[INT TERM HUP].freeze

      @recording = nil

      def self.begin_in_this_process
        return if @recording && @recording.pid == Process.pid

        @recording = new(ENV)
        @recording.begin
      end

      # What may go wrong in here is, at worst, a profile that is missing; never a program that does not run.
      PROBLEMS = [StandardError, ScriptError, NoMemoryError].freeze

      attr_reader :pid

      def initialize(environment)
        @directory = environment["SONDE_RUN_DIRECTORY"].dup
        @modes = environment["SONDE_RUN_MODES"].to_s.split(",").map(&:to_sym)
        @rate = environment["SONDE_RUN_RATE"].to_f
        @delay = environment["SONDE_RUN_DELAY"].to_f
        @duration = environment["SONDE_RUN_DURATION"].to_f
        @pid = Process.pid
        @name = "#{@pid}-#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}"
        @session = Session.new
        @mutex = Thread::Mutex.new
        @ended = false
      end

      def begin
        return note(Native.reason) unless Native.loaded?

        # Registered before anything of the program's: so it runs after all that.
        at_exit { end_at_exit }
        open if @delay.zero?
        start_timer if @delay.positive? || @duration.positive?
      rescue *PROBLEMS => e
        note(e.message)
      end

      private

      # With --delay or --duration the program has one more thread, for as long as that takes.
      def start_timer
        timer = Thread.new do
          if @delay.positive?
            sleep(@delay)
            open
          end
          if @duration.positive?
            sleep(@duration)
            finish
          end
        end
        timer.name = "sonde timer"
      end

      def open
        exclusively do
          @session.start(Configuration.new(modes: @modes, rate: @rate)) unless @ended
        end
      rescue *PROBLEMS => e
        note(e.message)
      end

      def end_at_exit
        return if Process.pid != @pid

        received = []
        previous = HELD_SIGNALS.map { |signal| [signal, trap(signal) { received << signal }] }
        finish
        previous.each { |signal, handler| trap(signal, handler || "SYSTEM_DEFAULT") }
        received.uniq.each { |signal| Process.kill(signal, @pid) }
      end

      # Both the timer and the end of the process come here; who is second waits until the first has written.
      def finish
        exclusively do
          unless @ended
            @ended = true
            profile = @session.stop
            profile ? write("pb", profile.encode) : note_nothing
          end
        end
      rescue *PROBLEMS => e
        note(e.message)
      end

      def exclusively(&block)
        Session.uninterrupted { @mutex.synchronize(&block) }
      end

      def note_nothing
        note("the program ended before the delay of #{@delay} s was over") if @delay.positive?
      end

      def note(reason)
        write("reason", "#{reason}\n")
      rescue SystemCallError
        nil # There is nowhere left to say it; `sonde run` says that nothing was written.
      end

      # Nobody ever sees half a file.
      def write(kind, bytes)
        path = "#{@directory}/#{@name}.#{kind}"
        mode = File::WRONLY | File::CREAT | File::TRUNC | File::BINARY
        File.open("#{path}.part", mode, 0o600) { |file| file.write(bytes) }
        File.rename("#{path}.part", path)
      end
    end
  end
end
