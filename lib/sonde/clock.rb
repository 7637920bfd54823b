# frozen_string_literal: true

module Sonde
  # Ruby's clocks as they were when Sonde was loaded, in nanoseconds: test suites that stop the time replace
  # Process.clock_gettime.
  module Clock
    READ = ::Process.method(:clock_gettime)
    private_constant :READ

    def self.monotonic
      READ.call(::Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # Of all threads of this process.
    def self.process_cpu
      READ.call(::Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
    end

    # Of the calling thread.
    def self.thread_cpu
      READ.call(::Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
    end

    # Since 1970.
    def self.real
      READ.call(::Process::CLOCK_REALTIME, :nanosecond)
    end
  end
end
