# frozen_string_literal: true

module Sonde
  module Report
    # What one flush gave: the profile, and what exporters want to know beside it.
    #
    # number::    0, 1, 2 ... in this process
    # endpoints:: how many requests (or jobs) it covers, by endpoint
    # last::      whether it is the last one of this process
    class Flushed
      attr_reader :profile, :number, :endpoints

      def initialize(profile, number, endpoints: {}, last: false)
        @profile = profile
        @number = number
        @endpoints = endpoints
        @last = last
      end

      def last?
        @last
      end

      def start
        profile.start
      end

      def finish
        profile.finish
      end

      # The profile as a pprof file; made once, whoever wants it.
      def pprof
        @pprof ||= profile.to_pprof
      end

      def empty?
        profile.sample_count.zero?
      end
    end
  end
end
