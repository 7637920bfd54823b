# frozen_string_literal: true

require_relative "../configuration"
require_relative "../export"
require_relative "../reporter"
require_relative "environment"

module Sonde
  module Report
    # Divides the options of Sonde.start: those of reporting are here, the others are the Configuration's. What is not
    # among the options is taken from the environment.
    class Settings
      OPTIONS = %i[export interval exit_timeout service gather].freeze
      INTERVALS = (0.1..86_400.0).freeze
      EXIT_TIMEOUTS = (0.0..600.0).freeze

      attr_reader :others, :environment

      def initialize(options, variables = ENV.to_h)
        @own, @others = options.partition { |name, _| OPTIONS.include?(name) }.map(&:to_h)
        @environment = Environment.new(variables, @own[:service])
      end

      # @raise [ArgumentError] if one of the other options is wrong
      def configuration
        Configuration.new(**{ budget: Configuration::ALWAYS_ON_BUDGET }.merge(others))
      end

      def reporting?
        !exporters.empty?
      end

      def exporters
        @exporters ||= Export.parse(@own.fetch(:export) { @environment["SONDE_EXPORT"] }, @environment)
      end

      def interval
        seconds(:interval, "SONDE_INTERVAL", Reporter::INTERVAL, INTERVALS)
      end

      def exit_timeout
        seconds(:exit_timeout, "SONDE_EXIT_TIMEOUT", Reporter::EXIT_TIMEOUT, EXIT_TIMEOUTS)
      end

      # nil, or what children hand their profiles over to.
      def gathering
        wanted = @own.fetch(:gather) { @environment.true?("SONDE_GATHER") }
        raise ArgumentError, "wrong option gather: #{wanted.inspect} (allowed: true, false)" unless
          [true, false, nil].include?(wanted)
        return unless wanted

        require_relative "gathering"
        Gathering.new
      end

      private

      def seconds(option, variable, default, range)
        return @environment.float(variable, default, range) unless @own.key?(option)

        value = @own[option]
        return value.to_f if (value.is_a?(Integer) || value.is_a?(Float)) && range.cover?(value)

        raise ArgumentError, "wrong option #{option}: #{value.inspect} (allowed: #{range.first} to #{range.last} " \
                             "seconds)"
      end
    end
  end
end
