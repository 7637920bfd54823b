# frozen_string_literal: true

module Sonde
  module CLI
    # Adds up the profiles that the processes of a run leave in its directory.
    #
    # Mostly that is done at the end. But a program may have thousands of children: where many profiles have come, they
    # are added up while it runs, so that neither the directory nor the work at the end grows with its time.
    class Gathering
      MANY = 200
      INTERVAL = 1.0

      # The memory of a profile is not Ruby's: the garbage collector does not see it grow.
      COLLECT_EVERY = 100

      # How many files could not be read.
      attr_reader :damaged

      def initialize(directory)
        @directory = directory
        @sum = nil
        @pids = {}
        @damaged = 0
        @added = 0
      end

      # Until {finish}.
      def begin
        @watcher = Thread.new { watch }
        @watcher.report_on_exception = false
      end

      # The sum; nil if there is nothing. One process: its profile as it is. Several: each sample is marked with its
      # process.
      #
      # @raise [Error] if this Ruby cannot add up profiles
      def finish
        @watcher&.kill&.join
        parts = @directory.parts
        return @sum if parts.empty?

        add(parts, labels: @sum || parts.map(&:pid).uniq.size > 1)
        @sum
      end

      # How many processes were profiled.
      def processes
        @pids.size
      end

      private

      def watch
        loop do
          sleep INTERVAL
          parts = @directory.parts
          Thread.handle_interrupt(Object => :never) { add(parts, labels: true) } if parts.size > MANY
        end
      end

      def add(parts, labels:)
        parts.each do |part|
          profile = read(part)
          @sum = @sum ? merge(@sum, profile, part, labels) : first(profile, part, labels) if profile
          part.remove
          GC.start if ((@added += 1) % COLLECT_EVERY).zero?
        end
      end

      def read(part)
        profile = Profile.from_pprof(part.bytes)
        profile.add_cpu("(sonde)", part.own_cpu, part.pid) if part.own_cpu.positive?
        @pids[part.pid] = true
        profile
      rescue FormatError
        @damaged += 1
        nil
      end

      def first(profile, part, labels)
        labels ? merge(Profile.blank, profile, part, labels) : profile
      end

      def merge(sum, profile, part, labels)
        sum.merge(profile, labels ? { "pid" => part.pid.to_s } : nil)
      end
    end
  end
end
