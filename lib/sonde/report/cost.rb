# frozen_string_literal: true

require_relative "../native"

module Sonde
  module Report
    # What a thread of Sonde's own costs: its CPU time is part of what Sonde may use (Sonde.status[:own_cpu_ns]). Made
    # and asked by that thread.
    class Cost
      CLOCK = Process::CLOCK_THREAD_CPUTIME_ID
      # Test suites replace the method.
      READ = Process.method(:clock_gettime)
      private_constant :READ

      def initialize
        @counted = cpu
      end

      # Counts what was used since the last time.
      def count
        now = cpu
        Native.count_delivery(now - @counted) if Native.loaded? && now > @counted
        @counted = now
      end

      private

      def cpu
        READ.call(CLOCK, :nanosecond)
      end
    end
  end
end
