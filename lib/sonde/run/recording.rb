# frozen_string_literal: true

require_relative "../clock"
require_relative "../errors"
require_relative "../native"
require_relative "../configuration"
require_relative "../fork"
require_relative "../session"
require_relative "part"

module Sonde
  module Run
    # The profile of one process below `sonde run`, from its first instant to its last.
    #
    #  1. At boot, and in a forked child right after the fork: leave word that there will be a profile, and open a
    #     window (or start a thread that does, for --delay and --duration).
    #  2. At exit, and before exec, exit! and Process.daemon: close it, and write the bytes into the directory that
    #     `sonde run` made (see Part). They are not compressed: `sonde run` reads them, so that this process needs no
    #     zlib.
    #  3. Where exec fails, begin anew: `sonde run` adds up several profiles of one process.
    #
    # It never prints and never raises.
    class Recording
      # Programs (and the gems that test them) replace these constants by others. These are the real ones.
      Process = ::Process
      Thread = ::Thread

      # During the few milliseconds of writing at the very end, these must not end the process. They are sent again
      # after it.
      HELD_SIGNALS = %w[INT TERM HUP QUIT].freeze

      # What may go wrong in here is, at worst, a profile that is missing; never a program that does not run.
      PROBLEMS = [StandardError, ScriptError, NoMemoryError].freeze

      # Seconds for which one thread waits while another is opening or writing. There is no Mutex, since an exit! in a
      # signal handler comes here too, and may have interrupted the very thread it would wait for.
      PATIENCE = 1.0

      @current = nil

      class << self
        def begin_in_this_process
          return if @current && @current.pid == Process.pid

          follow unless @current
          @current = new(ENV.to_h)
          @current.begin
        end

        private

        # A forked child inherits all of this, so it is done once.
        def follow
          # Registered before anything of the program's: so it runs after all that.
          at_exit { at_end { @current.end_at_exit } }
          Fork.on(:leave) { at_end { @current.finish } }
          Fork.on(:stay) { at_end { succeed } }
          Fork.on(:child) { succeed }
          Fork.install if Native.loaded?
        end

        # In a child that was forked by C code, the recording is still the parent's.
        def at_end
          yield if @current.pid == Process.pid
        end

        def succeed
          @current = @current.successor
          @current.begin
        end
      end

      attr_reader :pid

      # began: nanoseconds of the monotonic clock; --delay and --duration count from there.
      def initialize(settings, began = Recording.now)
        @settings = settings
        @began = began
        @delay = settings["SONDE_RUN_DELAY"].to_f
        @duration = settings["SONDE_RUN_DURATION"].to_f
        @pid = Process.pid
        @part = Part.new(settings["SONDE_RUN_DIRECTORY"], @pid)
        @session = Session.new
        @token = [:turn]
        @ended = false
      end

      def self.now
        Clock.monotonic
      end

      def begin
        return @part.note(Native.reason) unless Native.loaded?
        return if @duration.positive? && !before?(@delay + @duration)
        return unless @part.announce("ruby #{$PROGRAM_NAME}")

        wait = before?(@delay)
        open unless wait
        start_timer if wait || @duration.positive?
      rescue *PROBLEMS => e
        @part.note(e.message)
      end

      # One for the same program, in a forked child or after an end that did not come.
      def successor
        Recording.new(@settings, @began)
      end

      def end_at_exit
        received = []
        previous = HELD_SIGNALS.map { |signal| [signal, trap(signal) { received << signal }] }
        finish("the program ended before the delay of #{@delay} s was over")
        previous.each { |signal, handler| trap(signal, handler || "SYSTEM_DEFAULT") }
        received.uniq.each { |signal| Process.kill(signal, @pid) }
      end

      # The timer and every end of the process come here; who is second waits until the first has written.
      def finish(reason_if_not_begun = nil)
        exclusively do
          unless @ended
            @ended = true
            profile = @session.stop
            if profile
              @part.save(profile.encode)
            elsif reason_if_not_begun && before?(@delay)
              @part.note(reason_if_not_begun)
            else
              @part.close
            end
          end
        end
      rescue *PROBLEMS => e
        @part.note(e.message)
      end

      private

      def before?(seconds)
        Recording.now - @began < seconds * 1e9
      end

      # With --delay or --duration the program has one more thread, for as long as that takes.
      def start_timer
        timer = Thread.new do
          if before?(@delay)
            sleep_until(@delay)
            open
          end
          if @duration.positive?
            sleep_until(@delay + @duration)
            finish
          end
        end
        timer.name = "sonde timer"
      end

      def sleep_until(seconds)
        rest = seconds - (Recording.now - @began) / 1e9
        sleep(rest) if rest.positive?
      end

      def open
        exclusively do
          modes = @settings["SONDE_RUN_MODES"].to_s.split(",").map(&:to_sym)
          @session.start(Configuration.new(modes: modes, rate: @settings["SONDE_RUN_RATE"].to_f)) unless @ended
        end
      rescue *PROBLEMS => e
        @part.note(e.message)
      end

      # Array#pop is one step under the GVL.
      def exclusively
        Session.uninterrupted do
          limit = Recording.now + PATIENCE * 1e9
          token = nil
          sleep(0.001) until (token = @token.pop) || Recording.now > limit
          begin
            yield if token
          ensure
            @token.push(token) if token
          end
        end
      end
    end
  end
end
