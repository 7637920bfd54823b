# frozen_string_literal: true

module Sonde
  module Report
    # Threads of Sonde's own.
    module Background
      # A thread inherits what its maker has masked (Thread.handle_interrupt), and hands it on: in a forked child that
      # is everything, and the threads that Timeout makes up to Ruby 3.1 could not be ended.
      OPEN = { Object => :immediate }.freeze

      # Answers the thread. Raises ThreadError where none can be made.
      def self.start(name, &block)
        thread = Thread.new { Thread.handle_interrupt(OPEN, &block) }
        thread.name = name
        thread.report_on_exception = false
        thread
      end
    end
  end
end
