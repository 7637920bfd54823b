# frozen_string_literal: true

module Sonde
  module Report
    # The sleep of a background thread that others may end, from a signal handler too.
    #
    # A thread is woken (Thread#wakeup) only while it is in here: where it is doing something else, that would be
    # interrupted. Zlib, for one, then fails with a BufError. The wakeup may come a moment too early, and is lost then;
    # hence no sleep is longer than LONGEST.
    class Nap
      LONGEST = 5.0

      # Test suites replace the method.
      SLEEP = ::Kernel.method(:sleep)
      private_constant :SLEEP

      def initialize
        @sleeper = nil
      end

      # Only one thread at a time. Sleeps for so many seconds at most.
      def take(seconds = LONGEST)
        return unless seconds.positive?

        @sleeper = Thread.current
        SLEEP.call([seconds, LONGEST].min)
      ensure
        @sleeper = nil
      end

      def wake
        @sleeper&.wakeup
      rescue ThreadError
        nil # it has just ended
      end
    end
  end
end
