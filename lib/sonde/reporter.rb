# frozen_string_literal: true

require_relative "clock"
require_relative "report/background"
require_relative "report/cost"
require_relative "report/delivery"
require_relative "report/flushed"
require_relative "report/nap"
require_relative "report/voice"

module Sonde
  # Profiles this process for as long as it lives, and hands a profile to the exporters every minute, on request, and at
  # the end.
  #
  #  - It has a window of its own (a Session), so that other profiles of the process take nothing from it.
  #  - Its thread, "sonde reporter", flushes and encodes; each exporter has a thread that delivers (Report::Delivery).
  #    All of them are in the profile, under their names.
  #  - A forked child has its own: an empty window, empty queues, new threads, another rhythm.
  #  - The end of the process waits for it, but not for longer than exit_timeout.
  #
  # Nothing in here raises into the program, and there is no Mutex: signal handlers may call everything.
  class Reporter
    INTERVAL = 60.0
    JITTER = 0.1 # each period is up to this share shorter or longer
    EXIT_TIMEOUT = 5.0

    attr_reader :session, :interval

    # interval, exit_timeout: seconds. endpoints: answers the requests since it was asked before, by endpoint.
    # gathering: a Report::Gathering, where forked children are to hand their profiles over.
    def initialize(exporters, interval: INTERVAL, exit_timeout: EXIT_TIMEOUT, session: Session.new,
                   voice: Report::Voice.new, endpoints: -> { {} }, gathering: nil)
      Profile.load_zlib # now, so that no child has to do it
      @interval = interval
      @exit_timeout = exit_timeout
      @session = session
      @voice = voice
      @endpoints = endpoints
      @gathering = gathering
      @deliveries = exporters.map { |exporter| Report::Delivery.new(exporter, voice: voice) }
      reset
    end

    # False if it runs already. Raises Error where no window can be opened.
    def start(configuration)
      return false unless @session.start(configuration)

      begin_gathering
      plan
      ensure_thread
      true
    end

    def running?
      @session.running?
    end

    # Delivers what there is now. Answers the profile, a copy of which goes to the exporters; nil if nothing runs.
    def flush
      native = @session.flush
      native && hand_over(native, copy: true)
    end

    # Delivers the last profile and waits for all deliveries, for exit_timeout at most. Answers the profile, nil if
    # nothing ran.
    def stop
      deadline = now + @exit_timeout
      native = @session.stop
      return if native.nil?

      profile = hand_over(native, copy: true, last: true)
      finish(deadline)
      @gathering&.remove
      profile
    end

    # The process is about to end in a way after which nothing of it is left (exit!, exec): as stop, but {stay} undoes
    # it.
    def leave
      deadline = now + @exit_timeout
      native = @session.running? && @session.flush
      hand_over(native, last: true) if native
      finish(deadline)
    end

    # It did not end after all.
    def stay
      return unless @finishing

      @finishing = false
      @deliveries.each(&:resume)
      ensure_thread if running?
    end

    # In a forked child, after its session was opened anew.
    def after_fork
      reset
      @deliveries = [Report::Delivery.new(@gathering.hand_over, voice: @voice)] if @gathering
      @deliveries.each(&:reset)
      @endpoints.call # what was counted is the parent's
      return unless running?

      plan
      ensure_thread
    end

    # By exporter.
    def status
      @deliveries.map(&:status)
    end

    private

    # Where there is no room for the directory, each process delivers for itself.
    def begin_gathering
      @gathering&.begin
    rescue SystemCallError, ArgumentError => e # the latter: no temporary directory at all
      @gathering = nil
      @voice.once(:gathering, "each process delivers for itself: #{e.message}")
    end

    def reset
      @flushed = [] # flushes that are still to be encoded
      @number = 0
      @finishing = false
      @thread = nil
      @nap = Report::Nap.new
      @random = Random.new
    end

    def now
      Clock.monotonic / 1e9
    end

    # Many processes start at once, and must not all flush at once ever after.
    def plan
      @due = now + @interval * (1 - JITTER + 2 * JITTER * @random.rand)
    end

    def ensure_thread
      return if @thread&.alive?

      @thread = Report::Background.start("sonde reporter") { run }
    rescue ThreadError => e
      @voice.once(:thread, "the reporting thread cannot be started: #{e.message}")
    end

    def run
      cost = Report::Cost.new
      until @finishing && @flushed.empty?
        cost.count
        item = @flushed.shift
        if item
          encode(item)
        elsif now >= @due
          plan
          flush_in_time
        else
          @nap.take(@due - now)
        end
      end
    rescue *Report::PROBLEMS => e
      @voice.once(:run, "the reporting thread stopped: #{e.class}: #{e.message}")
    ensure
      @deliveries.each(&:finish) if @finishing
    end

    def flush_in_time
      native = @session.flush
      hand_over(native) if native
    rescue *Report::PROBLEMS => e
      @voice.once(:flush, "a profile is lost: #{e.class}: #{e.message}")
    end

    # The copy is what the exporters get: a profile can be worked on by one thread at a time, and the original belongs
    # to the caller.
    def hand_over(native, copy: false, last: false)
      endpoints = @endpoints.call
      profile = Profile.new(native)
      given = copy ? Profile.blank.merge(profile) : profile
      number = @number
      @number += 1
      profile.comment(*Requests.comments(endpoints)) if copy
      @flushed << Report::Flushed.new(given, number, endpoints: endpoints, last: last)
      ensure_thread
      @nap.wake
      profile
    rescue *Report::PROBLEMS => e
      @voice.once(:hand_over, "a profile is lost: #{e.class}: #{e.message}")
      profile
    end

    def encode(flushed)
      gathers = @gathering && !@gathering.child?
      flushed = @gathering.add_up(flushed) if gathers
      return if flushed.empty?

      # Who gathers says how many requests there were, all together.
      flushed.profile.comment(*Requests.comments(flushed.endpoints)) if gathers || @gathering.nil?
      @deliveries.each do |delivery|
        begin
          delivery.push(delivery.exporter.encode(flushed))
        rescue *Report::PROBLEMS => e
          delivery.unencodable(e)
        end
      end
    end

    # Its thread encodes what is left and has the deliveries finish.
    def finish(deadline)
      @finishing = true
      ensure_thread
      thread = @thread
      while thread&.alive? && now < deadline
        @nap.wake
        thread.join([0.05, [deadline - now, 0.001].max].min)
      end
      # Where there is no such thread, what waits is tried once more all the same.
      @deliveries.each(&:finish)
      @deliveries.each { |delivery| delivery.wait(deadline) }
    rescue *Report::PROBLEMS => e
      @voice.once(:finish, "the last profile may be lost: #{e.class}: #{e.message}")
    end
  end
end
