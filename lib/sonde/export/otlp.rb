# frozen_string_literal: true

require "zlib"
require_relative "http"
require_relative "otlp_names"
require_relative "proto"

module Sonde
  module Export
    # Sends profiles to an OpenTelemetry collector by OTLP over HTTP, in protobuf.
    #
    # Where to: the URL given, else OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT (taken as it is), else
    # OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318. OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT (milliseconds) and
    # _COMPRESSION (gzip, which is the default here, or none) hold, and so do those with PROFILES_ in their names. The
    # resource: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
    class Otlp
      Names = OtlpNames

      # most: bytes of one request, before compression.
      def initialize(environment, target = nil, most: Names::MAX_BYTES)
        @environment = environment
        @most = most
        @headers = environment.pairs(setting("HEADERS"), "=", decode: true)
        whole = target.nil? && environment["OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT"]
        @path = whole ? "" : Names::PATH
        base = target || whole || environment["OTEL_EXPORTER_OTLP_ENDPOINT"] || "http://localhost:4318"
        @gzip = setting("COMPRESSION") != "none"
        @http = HTTP.new(base, again: Names::RETRIED, timeout: timeout, secrets: @headers.values)
      end

      def name
        "otlp"
      end

      def target
        @http.shown + @path
      end

      def attempts
        Names::ATTEMPTS
      end

      def max_age
        nil
      end

      def encode(flushed)
        profile = flushed.profile
        return [] if profile.sample_count.zero?

        pieces(profile, 0...profile.sample_count, resource).map { |body| @gzip ? Zlib.gzip(body, level: 1) : body }
      end

      # A success may still say that what came was refused, and then no other attempt is allowed.
      def deliver(part)
        answer = @http.post(@path, part, headers)
        rejected, message = partial_success(answer.body)
        return if rejected.zero?

        raise Report::Failure, "#{target} refused #{rejected} profiles: #{message}"
      end

      def inspect
        "#<#{self.class} #{target}>"
      end

      private

      # As many requests as the limit of size asks for, each whole, with a dictionary of its own: halved until they fit.
      def pieces(profile, range, resource)
        body = Names.encode(profile, resource, range)
        return [body] if body.bytesize <= @most
        raise Error, "one sample alone has #{body.bytesize} bytes, more than the #{@most} of a request" if range.one?

        middle = range.begin + range.size / 2
        pieces(profile, range.begin...middle, resource) + pieces(profile, middle...range.end, resource)
      end

      def setting(name)
        @environment.first("OTEL_EXPORTER_OTLP_PROFILES_#{name}", "OTEL_EXPORTER_OTLP_#{name}")
      end

      def timeout
        name = %w[OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT OTEL_EXPORTER_OTLP_TIMEOUT].find { |each| @environment[each] }
        name ? @environment.integer(name, 10_000, 1..600_000) / 1000.0 : 10
      end

      def headers
        headers = { "Content-Type" => Names::CONTENT_TYPE, "Connection" => "close", "User-Agent" => "sonde/#{VERSION}" }
        headers["Content-Encoding"] = "gzip" if @gzip
        headers.merge(@headers)
      end

      # Read anew each time: a forked child has another pid.
      def resource
        own = { "service.name" => @environment.service, "host.name" => @environment.hostname,
                "process.runtime.name" => RUBY_ENGINE, "process.runtime.version" => RUBY_VERSION,
                "telemetry.sdk.language" => "ruby", "deployment.environment.name" => @environment.deployment,
                "service.version" => @environment.version }
        own.merge(@environment.tags).merge(@environment.attributes)
           .merge("service.name" => @environment.service, "process.pid" => ::Process.pid)
           .reject { |_, value| value.nil? }
      end

      # ExportProfilesServiceResponse { partial_success { rejected_profiles, error_message } }
      def partial_success(body)
        inner = Proto.parse(body)[1]
        fields = inner.is_a?(String) ? Proto.parse(inner) : {}
        [fields[1].to_i, fields[2].to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")[0, HTTP::SHOWN]]
      end
    end
  end
end
