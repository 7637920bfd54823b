# frozen_string_literal: true

require_relative "loading"
require_relative "report/failure"

module Sonde
  # Where profiles go. An exporter is an object with
  #
  #   name               a short String
  #   target             where it delivers to, without any secret
  #   attempts           how often a delivery is tried
  #   max_age            seconds after which what waits is not worth delivering any more, or nil
  #   encode(flushed)    what is to be delivered of a Report::Flushed: an Array of objects with `bytesize`
  #   deliver(part)      delivers one of them, or raises Report::Failure
  #   after_fork         optional: this is a new process now
  #
  # The first five are called by the reporting thread, deliver by the exporter's own.
  module Export
    # name => [constant, file]; they are loaded when they are used.
    KINDS = { "file" => :File, "datadog" => :Datadog, "pyroscope" => :Pyroscope, "otlp" => :Otlp }.freeze

    class << self
      # The exporters that the option or the variable asks for: a String with commas, a Symbol, an exporter, or an Array
      # of these.
      #
      # @raise [ArgumentError] for one that does not exist, or a URL that is none
      def parse(value, environment)
        words(value).map { |word| word.respond_to?(:deliver) ? word : build(word.to_s.strip, environment) }
      end

      private

      def words(value)
        case value
        when nil, false then []
        when true then ["file"]
        when Array then value.flat_map { |each| words(each) }
        when String then value.split(",").map(&:strip).reject(&:empty?)
        else [value]
        end
      end

      def build(word, environment)
        kind, target = word.split("=", 2)
        constant = KINDS[kind]
        if constant.nil?
          raise ArgumentError, "wrong option export: #{kind.inspect} (allowed: #{KINDS.keys.join(", ")}, each alone " \
                               "or with a URL, as in otlp=http://collector:4318)"
        end
        load(kind, constant) unless const_defined?(constant, false)
        const_get(constant).new(environment, target)
      end

      def load(kind, constant)
        Loading.once("the exporter #{kind}") do
          require_relative "export/#{kind}" unless const_defined?(constant, false)
        end
      end
    end
  end
end
