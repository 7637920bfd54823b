# frozen_string_literal: true

require_relative "sonde/version"
require_relative "sonde/clock"
require_relative "sonde/errors"
require_relative "sonde/native"
require_relative "sonde/configuration"
require_relative "sonde/fork"
require_relative "sonde/session"
require_relative "sonde/sessions"
require_relative "sonde/atomic_file"
require_relative "sonde/profile"
require_relative "sonde/empty_profile"
require_relative "sonde/labels"
require_relative "sonde/loading"
require_relative "sonde/requests"
require_relative "sonde/report/settings"

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
# zlib refuses to work there. Give it to another thread, through a Queue. And exporters that were not used before cannot
# be loaded there: {start} then says so and answers false.) None of them disturbs the program: the only
# exception they raise of their own is ArgumentError, for a wrong option. Where profiling is not possible ({supported?})
# they do nothing, and say so once.
#
# A forked child goes on profiling itself: whatever was running when it was forked runs in it too, and begins with
# nothing.
#
# == Options of {start} and {profile}
#
# modes::        what to measure, an Array of :cpu, :wall, :alloc, :heap (default: :cpu and :wall)
# rate::         samples each second on average, 1 to 1000 (default: 100)
# max_frames::   how many frames of a stack are kept; of a deeper one, both ends (default: 2000)
# memory_limit:: bytes that samples may take until the profile is fetched; past it they go to one visible stack,
#                "(overflow)" (default: 64 MiB). Of several profiles at once the largest holds
# budget::       percent of one CPU that Sonde may use, deliveries included (default: 0.5 with {start}, 1 with
#                {profile}; :alloc may use as much again). Where this is not enough for the rate, samples are taken less
#                often; {status} and the profile's comments say how often. Of several profiles the largest holds
#
# == Further options of {start}, for a profiler that stays on
#
# export::       where a profile goes every minute and at the end: "file", "datadog", "pyroscope", "otlp", each alone or
#                with a URL ("otlp=http://collector:4318"), several with commas or in an Array (default: SONDE_EXPORT;
#                without it nothing is sent, and {stop} and {flush} are how to get at the profile)
# interval::     seconds between two profiles (default: SONDE_INTERVAL, 60)
# exit_timeout:: seconds that the end of the process may wait for the last delivery (default: SONDE_EXIT_TIMEOUT, 5)
# gather::       true: forked children hand their profiles to the process that they were forked from, which adds them
#                up (label "worker") and delivers once for all (default: SONDE_GATHER)
# service::      the name under which backends show this program (default: SONDE_SERVICE, or what they name it by)
module Sonde
  @session = Session.new
  @warned = false
  @reporter = nil
  @at_exit = false
  @starting = [:start]
  Fork.on(:child) do
    @starting = [:start] # a thread of the parent's may have had it
    Requests.take
    Sessions.after_fork
    @reporter&.after_fork
  end
  Fork.on(:leave) { @reporter&.leave }
  Fork.on(:stay) { @reporter&.stay }

  class << self
    # Starts profiling the whole process, until {stop}.
    #
    # There is one such profile in a process. Starting it twice leaves the running one alone and returns false. Blocks
    # given to {profile} are independent of it.
    #
    # @return [Boolean] true if profiling began with this call
    # @raise [ArgumentError] if an option is wrong
    def start(**options)
      settings = Report::Settings.new(options)
      configuration = settings.configuration
      reporter = reporter_for(settings)
      return refuse(unsupported_reason) unless supported?

      start_alone { reporter ? start_reporter(reporter, configuration) : start_session(configuration) }
    rescue Error => e
      refuse("Sonde cannot profile now: #{e.message}")
    end

    # Ends what {start} began.
    #
    # With exporters it is delivered too, and this waits for that, exit_timeout at most.
    #
    # @return [Profile, nil] the profile since the start or the last {flush}; nil if nothing was running
    def stop
      reporter = @reporter
      return wrap(@session.stop) unless reporter&.running?

      begin
        reporter.stop
      ensure
        Sessions.remove(reporter.session)
      end
    end

    # Fetches the profile so far. Profiling goes on, and a new profile begins at the instant at which this one ends.
    #
    # With exporters it is delivered too; this does not wait for that.
    #
    # @return [Profile, nil] nil if nothing was running
    def flush
      reporter = @reporter
      reporter&.running? ? reporter.flush : wrap(@session.flush)
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

    # Marks what the calling fiber does in the block: each of its samples has the labels, in every profile.
    #
    #   Sonde.label(tenant: tenant.name, job: "import") { ... }
    #
    # Blocks may be nested: the inner one adds to the outer's, and wins where both have a key. Other threads and fibers
    # are not concerned, not even those made inside; {carry} is for them. Values are Strings, Symbols or Integers,
    # others are shown by to_s; nil and "" leave the label out. Of a text 200 characters are kept, of a set 32 labels.
    # There should be a bounded number of values: past 16,000 sets at once a block is shown as labels=(overflow).
    #
    # @param labels [Hash{Symbol, String => Object}]
    # @return what the block answers
    # @raise [ArgumentError] without a block, or if it is given no Hash
    def label(labels, &block)
      raise ArgumentError, "no block given" unless block
      raise ArgumentError, "wrong labels: #{labels.inspect} (allowed: a Hash)" unless labels.is_a?(Hash)

      supported? ? Labels.with(Labels.list(labels), &block) : yield
    end

    # @return [Hash{String => String, Integer}] the labels that hold here
    def labels
      supported? ? Labels.here : {}
    end

    # Takes the labels that hold here to another thread or fiber:
    #
    #   Thread.new(&Sonde.carry { work })
    #   pool.post(&Sonde.carry { work })
    #
    # @return [Proc] that calls the block, with these labels around it
    def carry(&block)
      raise ArgumentError, "no block given" unless block

      supported? ? Labels.carry(block) : block
    end

    # @return [Boolean] whether what {start} began is running
    def running?
      @session.running? || (@reporter&.running? ? true : false)
    end

    # The state of the profiler: rates reached, samples, what was dropped and why, its own cost; for each exporter what
    # was delivered, what was lost and why.
    #
    # @return [Hash{Symbol => Object}]
    def status
      own = { supported: supported?, started: running? }
      own[:exports] = @reporter.status if @reporter
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

    def reporter_for(settings)
      return unless settings.reporting?

      Reporter.new(settings.exporters, interval: settings.interval, exit_timeout: settings.exit_timeout,
                                       gathering: settings.gathering, endpoints: -> { Requests.take })
    end

    # As in Session: who finds no token gives up, since somebody else is just starting. Of two with exporters both would
    # begin otherwise, each with a session of its own.
    def start_alone
      Session.uninterrupted do
        begin
          token = @starting.pop
          next false if token.nil? || running?

          Requests.take # what was counted before is not in the profile
          yield
        ensure
          @starting.push(token) if token
        end
      end
    end

    def start_session(configuration)
      follow(@session)
      @session.start(configuration)
    end

    # Of the end of the process: what is registered first runs last, so blocks of the program's own are in the profile
    # if they come later.
    def start_reporter(reporter, configuration)
      follow(reporter.session)
      unless @at_exit
        @at_exit = true
        at_exit { @reporter&.stop }
      end
      @reporter = reporter
      reporter.start(configuration)
    rescue Error
      Sessions.remove(reporter.session)
      raise
    end

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
      EmptyProfile.new(Clock.real, 0, reason)
    end

    def profile_nothing(reason)
      start = Clock.real
      begun = Clock.monotonic
      yield
      duration = Clock.monotonic - begun
      Profile.new(EmptyProfile.new(start, duration, reason))
    end

    def wrap(native)
      native && Profile.new(native).comment(*Requests.comments(Requests.take))
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
