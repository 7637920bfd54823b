# frozen_string_literal: true

require_relative "../clock"
require_relative "../native"

module Sonde
  module Report
    # What a thread of Sonde's own costs: its CPU time is part of what Sonde may use (Sonde.status[:own_cpu_ns]). Made
    # and asked by that thread.
    class Cost
      def initialize
        @counted = Clock.thread_cpu
      end

      # Counts what was used since the last time.
      def count
        now = Clock.thread_cpu
        Native.count_delivery(now - @counted) if Native.loaded? && now > @counted
        @counted = now
      end
    end
  end
end
