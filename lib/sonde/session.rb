# frozen_string_literal: true

module Sonde
  # One profile from its start to its stop: that of Sonde.start and Sonde.stop, or that of a Sonde.profile block.
  #
  # Any thread may call any method at any time, a signal handler too. So there is no Mutex here: locking one raises in a
  # handler, and a handler that interrupts its owner would wait for ever. Instead:
  #  - Window#close is itself the decision: of several calls exactly one gets the profile, the others get nil.
  #  - A closed window counts as none, so nothing must happen together with close.
  #  - Starting takes the only token there is (Array#pop is one step under the GVL). Who finds none gives up: somebody
  #    else is just starting.
  # An asynchronous exception (Thread#raise, Thread#kill, Timeout) waits until a call is done, so that it can neither
  # leave a window open nor lose a profile.
  #
  # In a forked child the engine has closed the window: what it holds is the parent's. The child goes on with a window
  # of its own ({after_fork}), with the same options, so that its profile is of what it did since the fork.
  class Session
    NEVER = { Object => :never }.freeze
    private_constant :NEVER

    # The thread that runs its block; nil: it is not one of a block, or that is over.
    attr_accessor :owner

    # engine: who opens windows.
    def initialize(engine = Native)
      @engine = engine
      @owner = nil
      @window = nil
      @configuration = nil # of what should run
      @token = [:start]
    end

    # Opens the window. False if one is open already, which is left alone.
    def start(configuration)
      uninterrupted do
        begin
          token = @token.pop
          next false if token.nil? || running?

          @window = Session.open_window(configuration, @engine)
          @configuration = configuration
          true
        ensure
          @token.push(token) if token
        end
      end
    end

    # The native profile since the start or the last flush; nil if nothing runs.
    def stop
      uninterrupted do
        window = @window
        configuration = @configuration
        @configuration = nil # from now on a child of another thread's does not go on either
        profile = window&.close
        if profile
          @window = nil if @window.equal?(window)
        elsif running?
          @configuration = configuration # refused: this is a signal handler in the middle of a flush
        end
        profile
      end
    end

    # The native profile so far; a new one begins. Nil if nothing runs.
    def flush
      uninterrupted do
        window = @window
        window.flush if window && !window.closed?
      end
    end

    def running?
      window = @window
      !window.nil? && !window.closed?
    end

    # In a forked child, before anything else there. Where no window can be opened, the child goes on without.
    def after_fork
      @token = [:start] # a thread of the parent's may have had it
      return if @configuration.nil?

      @window = nil
      @window = Session.open_window(@configuration, @engine)
    rescue Error
      @configuration = nil
    end

    def self.open_window(configuration, engine = Native)
      engine.open_window(configuration.modes, configuration.rate, configuration.max_frames, configuration.memory_limit,
                         configuration.budget / 100.0)
    end

    # Runs the block without letting an asynchronous exception in.
    def self.uninterrupted(&block)
      Thread.handle_interrupt(NEVER, &block)
    end

    private

    def uninterrupted(&block)
      Session.uninterrupted(&block)
    end
  end
end
