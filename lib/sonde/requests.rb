# frozen_string_literal: true

module Sonde
  # How many requests (or jobs) a profile covers, by endpoint: what makes profiles of different load comparable.
  #
  #   Sonde::Requests.count("GET /orders/:id")
  module Requests
    MOST = 500 # endpoints; more are counted together
    OTHERS = "(other)"
    SHOWN = 50 # of them in a profile's comments

    @mutex = Mutex.new
    @counts = Hash.new(0)

    class << self
      def count(endpoint)
        @mutex.synchronize do
          endpoint = OTHERS unless @counts.key?(endpoint) || @counts.size < MOST
          @counts[endpoint] += 1
        end
      end

      # Those since it was asked before: { endpoint => count }.
      def take
        return {} if @counts.empty?

        # A signal handler may not wait for a Mutex; what it does not get is in the next profile.
        return {} unless (locked = try_lock)

        counts = @counts
        @counts = Hash.new(0)
        counts.to_h
      ensure
        @mutex.unlock if locked
      end

      # As a profile's comments say it.
      def comments(counts)
        return [] if counts.empty?

        most = counts.sort_by { |endpoint, count| [-count, endpoint] }.first(SHOWN)
        ["requests: #{counts.values.sum}"] + most.map { |endpoint, count| "requests to #{endpoint}: #{count}" }
      end

      private

      def try_lock
        @mutex.try_lock
      rescue ThreadError
        false
      end
    end
  end
end
