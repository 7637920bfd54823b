# frozen_string_literal: true

require_relative "sonde/version"
require_relative "sonde/errors"
require_relative "sonde/native"
require_relative "sonde/configuration"
require_relative "sonde/fork"
require_relative "sonde/session"
require_relative "sonde/sessions"
require_relative "sonde/atomic_file"
require_relative "sonde/profile"
require_relative "sonde/empty_profile"

# A profiler that can stay on.
#
#   Sonde.start
#   ...
#   Sonde.stop.save("profile.pb.gz")
#
#   profile = Sonde.profile { work }
#   profile.top.each { |entry| puts entry.name }
#
# Every method may be called from any thread, and all but {profile} from a signal handler. (Saving a profile may not:
# zlib refuses to work there. Give it to another thread, through a Queue.) None of them disturbs the program: the only
# exception they raise of their own is ArgumentError, for a wrong option. Where profiling is not possible ({supported?})
# they do nothing, and say so once.
#
# A forked child goes on profiling itself: whatever was running when it was forked runs in it too, and begins with
# nothing.
#
# == Options of {start} and {profile}
#
# modes::        what to measure, an Array of :cpu, :wall, :alloc (default: :cpu and :wall)
# rate::         samples each second on average, 1 to 1000 (default: 100)
# max_frames::   how many frames of a stack are kept; of a deeper one, both ends (default: 2000)
# memory_limit:: bytes that samples may take until the profile is fetched; past it they go to one visible stack,
#                "(overflow)" (default: 64 MiB)
module Sonde
  @session = Session.new
  @warned = false
  Fork.on(:child) { Sessions.after_fork }

  class << self
    # Starts profiling the whole process, until {stop}.
    #
    # There is one such profile in a process. Starting it twice leaves the running one alone and returns false. Blocks
    # given to {profile} are independent of it.
    #
    # @return [Boolean] true if profiling began with this call
    # @raise [ArgumentError] if an option is wrong
    def start(**options)
      configuration = Configuration.new(**options)
      return refuse(unsupported_reason) unless supported?

      begin
        follow(@session)
        @session.start(configuration)
      rescue Error => e
        refuse("Sonde cannot profile now: #{e.message}")
      end
    end

    # Ends what {start} began.
    #
    # @return [Profile, nil] the profile since the start or the last {flush}; nil if nothing was running
    def stop
      wrap(@session.stop)
    end

    # Fetches the profile so far. Profiling goes on, and a new profile begins at the instant at which this one ends.
    #
    # @return [Profile, nil] nil if nothing was running
    def flush
      wrap(@session.flush)
    end

    # Profiles the process while the block runs. Blocks may be nested, and may run in several threads at once: each gets
    # a profile of its own, of everything the process did in that time. If the block raises, throws or returns,
    # profiling ends and the profile is gone. In a child that is forked inside the block, it is of what the child did
    # since.
    #
    # Where profiling is not possible the block runs all the same, and the profile is empty; its comment says why.
    #
    # @return [Profile]
    # @raise [ArgumentError] if an option is wrong; the block has not run then
    def profile(**options, &block)
      raise ArgumentError, "no block given (Sonde.start profiles without one)" unless block

      configuration = Configuration.new(**options)
      return profile_nothing(unsupported_reason, &block) unless supported?

      profile_window(configuration, &block)
    end

    # @return [Boolean] whether what {start} began is running
    def running?
      @session.running?
    end

    # The state of the profiler: rates reached, samples, what was dropped and why, its own cost.
    #
    # @return [Hash{Symbol => Object}]
    def status
      own = { supported: supported?, started: running? }
      supported? ? own.merge(Native.status) : own.merge(reason: unsupported_reason)
    end

    # @return [Boolean] whether this Ruby can be profiled
    def supported?
      Native.loaded?
    end

    # @return [String, nil] one sentence: why this Ruby cannot be profiled, and what to do; nil if it can
    def unsupported_reason
      "Sonde cannot profile this Ruby: #{Native.reason}" unless supported?
    end

    private

    def follow(session, owner = nil)
      Fork.install
      Sessions.add(session, owner)
    end

    # Like what a session does, what is around it cannot be interrupted by an asynchronous exception; the block can.
    def profile_window(configuration, &block)
      session = Session.new
      native = problem = nil
      begun = false
      begin
        Session.uninterrupted { begun = (problem = try_start(session, configuration)).nil? }
        return profile_nothing(problem, &block) if problem

        yield
      ensure
        Session.uninterrupted { native = end_block(session) } if begun
      end
      Profile.new(native || empty("the child could not be profiled after the fork"))
    end

    # Answers what went wrong.
    def try_start(session, configuration)
      follow(session, Thread.current)
      session.start(configuration)
      nil
    rescue Error => e
      Sessions.remove(session)
      refuse("Sonde cannot profile now: #{e.message}")
      e.message
    end

    def end_block(session)
      session.stop
    ensure
      Sessions.remove(session)
    end

    def empty(reason)
      EmptyProfile.new(Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond), 0, reason)
    end

    def profile_nothing(reason)
      start = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
      begun = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      yield
      duration = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - begun
      Profile.new(EmptyProfile.new(start, duration, reason))
    end

    def wrap(native)
      native && Profile.new(native)
    end

    # Says once why nothing is profiled.
    def refuse(sentence)
      unless @warned
        @warned = true
        warn "#{sentence}."
      end
      false
    end
  end
end
