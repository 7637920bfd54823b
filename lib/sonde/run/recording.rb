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
    # CPU time. A forked child is seen from its first instant on. What a Ruby used before it had loaded Sonde, and what
    # the end of the profile took, is measured, and added under names of their own. Of the same process a program before
    # an exec may have counted some already; it left word of that in the environment.
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

      # Signal.trap as it is now: programs replace it, too.
      TRAP = ::Signal.method(:trap)
      WORTH_A_SAMPLE = 100_000 # nanoseconds
      COUNTED = "SONDE_RUN_COUNTED" # <pid>:<nanoseconds of CPU>
      private_constant :TRAP, :WORTH_A_SAMPLE, :COUNTED

      @current = nil

      class << self
        def begin_in_this_process
          return if @current && @current.pid == Process.pid

          follow unless @current
          @current = new(ENV.to_h)
          @current.begin(counted_before)
        end

        private

        # A forked child inherits all of this, so it is done once.
        def follow
          # Registered before anything of the program's: so it runs after all that.
          at_exit { at_end { @current.end_at_exit } }
          Fork.on(:leave) { at_end { leave } }
          Fork.on(:stay) { at_end { succeed } }
          Fork.on(:child) { succeed }
          Fork.install if Native.loaded?
        end

        def leave
          @current.finish
          ENV[COUNTED] = "#{@current.pid}:#{Clock.process_cpu}"
        end

        # Of the CPU time of this process, by what it was before an exec.
        def counted_before
          pid, nanoseconds = ENV.delete(COUNTED).to_s.split(":")
          pid.to_i == Process.pid ? nanoseconds.to_i : 0
        end

        # In a child that was forked by C code, the recording is still the parent's.
        def at_end
          yield if @current.pid == Process.pid
        end

        def succeed
          ENV.delete(COUNTED)
          @current = @current.successor
          @current.begin
        end
      end

      attr_reader :pid

      # began: nanoseconds of the monotonic clock; --delay and --duration count from there. cpu_from: CPU time of this
      # process of which nothing is to be counted.
      def initialize(settings, began = Recording.now, cpu_from = 0)
        @settings = settings
        @began = began
        @delay = settings["SONDE_RUN_DELAY"].to_f
        @duration = settings["SONDE_RUN_DURATION"].to_f
        @pid = Process.pid
        @part = Part.new(settings["SONDE_RUN_DIRECTORY"], @pid)
        @session = Session.new
        @token = [:turn]
        @ended = false
        @cpu_from = cpu_from
        @cpu_before = nil
      end

      def self.now
        Clock.monotonic
      end

      # counted_before: nanoseconds of CPU that this process used before it became this Ruby; nil for a Ruby that was
      # profiled already.
      def begin(counted_before = nil)
        return @part.note(Native.reason) unless Native.loaded?
        return if @duration.positive? && !before?(@delay + @duration)
        return unless @part.announce("ruby #{$PROGRAM_NAME}")

        wait = before?(@delay)
        open(counted_before) unless wait
        start_timer if wait || @duration.positive?
      rescue *PROBLEMS => e
        @part.note(e.message)
      end

      # One for the same program, in a forked child (whose CPU clock began at zero) or after an end that did not come.
      def successor
        Recording.new(@settings, @began, Process.pid == @pid ? Clock.process_cpu : 0)
      end

      def end_at_exit
        received = []
        previous = HELD_SIGNALS.map { |signal| [signal, TRAP.call(signal) { received << signal }] }
        finish("the program ended before the delay of #{@delay} s was over")
        previous.each { |signal, handler| TRAP.call(signal, handler || "SYSTEM_DEFAULT") }
        received.uniq.each { |signal| Process.kill(signal, @pid) }
      end

      # The timer and every end of the process come here; who is second waits until the first has written.
      def finish(reason_if_not_begun = nil)
        exclusively do
          unless @ended
            @ended = true
            before_stop = Clock.process_cpu
            profile = @session.stop
            if profile
              save(profile, before_stop)
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

      def save(profile, before_stop)
        counted = @cpu_from + profile.totals["cpu-time"].to_i
        unseen = [before_stop - counted, 0].max # until the window was open
        before = @cpu_before.to_i + unseen
        name = @cpu_before ? "(start of Ruby)" : "(not sampled)"
        profile.add_cpu(name, before, @pid) if before > WORTH_A_SAMPLE
        @part.save(profile.encode) { [Clock.process_cpu - counted - unseen, 0].max }
      end

      def before?(seconds)
        Recording.now - @began < seconds * 1e9
      end

      # With --delay or --duration the program has one more thread, for as long as that takes.
      def start_timer
        timer = Thread.new do
          if before?(@delay)
            sleep_until(@delay)
            @cpu_from = Clock.process_cpu
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

      def open(counted_before = nil)
        exclusively do
          if counted_before
            @cpu_from = Clock.process_cpu
            @cpu_before = [@cpu_from - counted_before, 0].max
          end
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
