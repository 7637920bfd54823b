# frozen_string_literal: true

require_relative "../version"

module Sonde
  module Report
    # What the variables of the environment say, Sonde's own and those that other tools have made common. Empty ones
    # count as not set.
    class Environment
      # In a URL's own password, and in these, there are secrets.
      SECRET = /KEY|PASSWORD|TOKEN|HEADERS/.freeze
      MASK = "********"

      # service: what the option says; it wins.
      def initialize(variables = ENV.to_h, service = nil)
        @variables = variables
        @service = service
      end

      def [](name)
        value = @variables[name]
        value unless value.nil? || value.strip.empty?
      end

      # The first that is set.
      def first(*names)
        names.each do |name|
          value = self[name]
          return value if value
        end
        nil
      end

      def service
        (@service || first("SONDE_SERVICE", "DD_SERVICE", "OTEL_SERVICE_NAME") || attributes["service.name"] ||
          self["PYROSCOPE_APPLICATION_NAME"] || program).to_s
      end

      def deployment
        first("SONDE_ENV", "DD_ENV") || attributes["deployment.environment.name"] ||
          attributes["deployment.environment"]
      end

      def version
        first("SONDE_VERSION", "DD_VERSION") || attributes["service.version"]
      end

      # SONDE_TAGS=region:eu,team:shop
      def tags
        pairs(self["SONDE_TAGS"], ":")
      end

      # OTEL_RESOURCE_ATTRIBUTES
      def attributes
        @attributes ||= pairs(self["OTEL_RESOURCE_ATTRIBUTES"], "=", decode: true)
      end

      # key=value,key=value -> Hash; what is no pair is left out.
      def pairs(text, separator, decode: false)
        text.to_s.split(",").each_with_object({}) do |pair, result|
          key, value = pair.split(separator, 2).map(&:strip)
          next if key.nil? || key.empty? || value.nil? || value.empty?

          result[key] = decode ? percent_decoded(value) : value
        end
      end

      def integer(name, default, range)
        number(name, default, range) { |text| Integer(text, 10) }
      end

      def float(name, default, range)
        number(name, default, range) { |text| Float(text) }
      end

      def true?(name)
        %w[1 true yes on].include?(self[name].to_s.strip.downcase)
      end

      def hostname
        require "socket"
        @hostname ||= Socket.gethostname
      end

      # For people: what is set, without secrets. Answers nil if it is not set.
      def shown(name)
        value = self[name]
        return if value.nil?
        return MASK if SECRET.match?(name)

        value.gsub(%r{//[^/@\s]*@}, "//#{MASK}@")
      end

      private

      def number(name, default, range)
        text = self[name]
        return default if text.nil?

        value = yield(text.strip)
        raise ArgumentError unless range.cover?(value)

        value
      rescue ArgumentError
        raise ArgumentError, "wrong #{name}: #{text.inspect} (allowed: #{range.first} to #{range.last})"
      end

      def percent_decoded(text)
        text.gsub(/%\h\h/) { |code| code[1, 2].hex.chr }.force_encoding(Encoding::UTF_8).scrub("?")
      end

      def program
        name = ::File.basename($PROGRAM_NAME.to_s, ".*")
        name.empty? || name == "-e" ? "ruby" : name
      end
    end
  end
end
