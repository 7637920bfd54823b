# frozen_string_literal: true

# Stands in for the engine in tests of what the Ruby layer does with it: it remembers every window, can fail, and can be
# slow.
class FakeEngine
  Profile = Struct.new(:number)

  class Window
    attr_reader :flushes

    def initialize(engine)
      @engine = engine
      @open = [:open] # taken by the one close that counts: Array#pop is one step, as close is in the engine
      @flushes = 0
    end

    def flush
      @flushes += 1
      @engine.next_profile
    end

    def close
      return unless @open.pop

      @engine.pause
      @engine.next_profile
    end

    def closed?
      @open.empty?
    end
  end

  attr_reader :windows, :profiles
  attr_accessor :failure, :delay

  def initialize
    @windows = []
    @profiles = []
  end

  def open_window(*arguments)
    @arguments = arguments
    pause
    raise failure if failure

    window = Window.new(self)
    @windows << window
    window
  end

  def open_windows
    windows.reject(&:closed?)
  end

  def next_profile
    profile = Profile.new(@profiles.size)
    @profiles << profile
    profile
  end

  def pause
    sleep(delay) if delay
  end
end
