# frozen_string_literal: true

require_relative "../configuration"
require_relative "environment"

module Sonde
  module Report
    # Every variable of the environment that Sonde looks at: the table behind docs/configuration.md and `sonde doctor`.
    module Variables
      # name, what for
      OWN = {
        "SONDE_ENABLED" => "1 starts Sonde where sonde/auto is loaded",
        "SONDE_EXPORT" => "where profiles go",
        "SONDE_INTERVAL" => "seconds between two profiles",
        "SONDE_EXIT_TIMEOUT" => "seconds that the end may wait for the last delivery",
        "SONDE_GATHER" => "1: forked children hand their profiles to their parent, which delivers once for all",
        "SONDE_SERVICE" => "name of the program at the backends",
        "SONDE_ENV" => "name of the deployment, such as production",
        "SONDE_VERSION" => "version of the program",
        "SONDE_TAGS" => "more tags, as in region:eu,team:shop",
        "SONDE_DIRECTORY" => "directory of the exporter file",
        "SONDE_KEEP_FILES" => "files it keeps",
        "SONDE_KEEP_SECONDS" => "age of the oldest file it keeps",
        "SONDE_MODES" => "what is measured, as in cpu,wall (sonde/auto)",
        "SONDE_RATE" => "samples each second (sonde/auto)",
        "SONDE_MAX_FRAMES" => "frames kept of a stack (sonde/auto)",
        "SONDE_MEMORY_LIMIT" => "bytes that samples may take (sonde/auto)",
        "SONDE_BUDGET" => "percent of one CPU that Sonde may use (sonde/auto)"
      }.freeze

      # Those that other tools have made common.
      OTHERS = {
        "DD_SERVICE" => "service", "DD_ENV" => "deployment", "DD_VERSION" => "version", "DD_TAGS" => "tags",
        "DD_TRACE_AGENT_URL" => "address of the agent", "DD_AGENT_HOST" => "host of the agent",
        "DD_TRACE_AGENT_PORT" => "port of the agent", "DD_PROFILING_AGENTLESS" => "1: without an agent",
        "DD_API_KEY" => "key, without an agent", "DD_SITE" => "site, without an agent",
        "DD_PROFILING_UPLOAD_TIMEOUT" => "seconds", "DD_HOSTNAME" => "host", "DD_EXTERNAL_ENV" => "passed on",
        "DD_GIT_REPOSITORY_URL" => "repository", "DD_GIT_COMMIT_SHA" => "commit",
        "PYROSCOPE_SERVER_ADDRESS" => "address", "PYROSCOPE_APPLICATION_NAME" => "service",
        "PYROSCOPE_BASIC_AUTH_USER" => "user", "PYROSCOPE_BASIC_AUTH_PASSWORD" => "password",
        "PYROSCOPE_AUTH_TOKEN" => "token", "PYROSCOPE_TENANT_ID" => "tenant", "PYROSCOPE_LABELS" => "labels",
        "OTEL_SERVICE_NAME" => "service", "OTEL_RESOURCE_ATTRIBUTES" => "attributes of the resource",
        "OTEL_EXPORTER_OTLP_ENDPOINT" => "address", "OTEL_EXPORTER_OTLP_HEADERS" => "headers",
        "OTEL_EXPORTER_OTLP_TIMEOUT" => "milliseconds", "OTEL_EXPORTER_OTLP_COMPRESSION" => "gzip or none",
        "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT" => "whole URL", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS" => "headers",
        "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT" => "milliseconds",
        "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION" => "gzip or none",
        "http_proxy" => "proxy", "https_proxy" => "proxy", "no_proxy" => "hosts reached without it"
      }.freeze

      DEFAULT_EXPORT = "file"
      # Options of Sonde.start that are read here only; those of reporting it reads itself (Settings).
      RANGES = { rate: Configuration::RATES, max_frames: Configuration::FRAMES,
                 memory_limit: Configuration::MEMORY, budget: Configuration::BUDGETS }.freeze

      class << self
        # Of a start from the environment alone.
        #
        # @raise [ArgumentError] with the name of the variable that is wrong
        def options(variables)
          environment = Environment.new(variables)
          options = { export: environment["SONDE_EXPORT"] || DEFAULT_EXPORT }
          modes = environment["SONDE_MODES"]
          options[:modes] = modes.split(",").map { |mode| mode.strip.to_sym } if modes
          RANGES.each do |option, range|
            name = "SONDE_#{option.to_s.upcase}"
            next if environment[name].nil?

            kind = %i[rate budget].include?(option) ? :float : :integer
            options[option] = environment.public_send(kind, name, nil, range)
          end
          options
        end

        # Name => value, of those that are set; secrets are masked.
        def set(variables)
          environment = Environment.new(variables)
          (OWN.keys + OTHERS.keys).map { |name| [name, environment.shown(name)] }.reject { |_, value| value.nil? }.to_h
        end
      end
    end
  end
end
