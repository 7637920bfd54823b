# frozen_string_literal: true

require "securerandom"
require "zlib"
require_relative "http"
require_relative "proto"
require_relative "pyroscope_names"

module Sonde
  module Export
    # Pushes profiles to Pyroscope: one request for each of its series, since of a request with several some may be
    # stored although an error comes back.
    #
    # Where to: the URL given, else PYROSCOPE_SERVER_ADDRESS, else http://localhost:4040. As whom:
    # PYROSCOPE_BASIC_AUTH_USER and PYROSCOPE_BASIC_AUTH_PASSWORD, or PYROSCOPE_AUTH_TOKEN, or a user in the URL;
    # PYROSCOPE_TENANT_ID. More labels: PYROSCOPE_LABELS (a=b,c=d) and SONDE_TAGS.
    class Pyroscope
      Names = PyroscopeNames

      def initialize(environment, target = nil)
        @environment = environment
        @user, @password, @token, @tenant = %w[BASIC_AUTH_USER BASIC_AUTH_PASSWORD AUTH_TOKEN TENANT_ID].map do |name|
          environment["PYROSCOPE_#{name}"]
        end
        check_tenant
        @http = HTTP.new(target || environment["PYROSCOPE_SERVER_ADDRESS"] || "http://localhost:4040",
                         again: Names::RETRIED, secrets: [@password, @token])
      end

      def name
        "pyroscope"
      end

      def target
        @http.shown + Names::PATH
      end

      def attempts
        Names::ATTEMPTS
      end

      def max_age
        Names::MAX_AGE
      end

      def encode(flushed)
        Names::SERIES.flat_map do |series, rules|
          profile = flushed.profile.reshape(types: rules[:types], labels: Names::LABELS, period_type: rules[:period],
                                            max_depth: Names::MAX_DEPTH)
          profile.sample_count.zero? ? [] : pieces(profile, 0...profile.sample_count).map { |raw| push(series, raw) }
        end
      end

      def deliver(part)
        @http.post(Names::PATH, part, headers)
      end

      def inspect
        "#<#{self.class} #{target}>"
      end

      private

      def check_tenant
        return if @tenant.nil? || (Names::TENANT.match?(@tenant) && !%w[. ..].include?(@tenant))

        raise ArgumentError, "wrong PYROSCOPE_TENANT_ID: #{@tenant.inspect} (allowed: up to 150 letters, digits and " \
                             "!-_.*'())"
      end

      # Within the limits of number and size: halved until they fit.
      def pieces(profile, range)
        part = profile
        unless range.size == profile.sample_count
          types = profile.sample_types.map { |type, unit| [type, type, unit] }
          part = profile.reshape(types: types, samples: range)
        end
        raw = part.encode
        fits = range.size <= Names::MAX_SAMPLES && raw.bytesize <= Names::MAX_BYTES
        return [Zlib.gzip(raw, level: 1)] if fits || range.size == 1

        middle = range.begin + range.size / 2
        pieces(profile, range.begin...middle) + pieces(profile, middle...range.end)
      end

      # PushRequest { series { labels { name, value }, samples { raw_profile, ID } } }
      def push(series, raw)
        labels = { "__name__" => series, "service_name" => @environment.service, "__delta__" => "false" }
        labels = @environment.pairs(@environment["PYROSCOPE_LABELS"], "=").merge(own_labels).merge(labels)
        pairs = labels.map do |key, value|
          Proto.bytes(1, Proto.bytes(1, label_name(key)) + Proto.bytes(2, value.to_s.scrub("?")[0, Names::LABEL_VALUE]))
        end
        sample = Proto.bytes(1, raw) + Proto.bytes(2, SecureRandom.uuid)
        Zlib.gzip(Proto.bytes(1, pairs.join + Proto.bytes(2, sample)), level: 1)
      end

      def own_labels
        { "pyroscope_spy" => "sonde", "env" => @environment.deployment, "version" => @environment.version,
          "service_repository" => @environment["DD_GIT_REPOSITORY_URL"],
          "service_git_ref" => @environment["DD_GIT_COMMIT_SHA"] }
          .merge(@environment.tags).reject { |_, value| value.nil? }
      end

      # Older servers refuse the whole push for other names.
      def label_name(key)
        key.to_s.gsub(/[^A-Za-z0-9_.]/, "_").sub(/\A(?=[0-9.])/, "_")
      end

      def headers
        headers = { "Content-Type" => Names::CONTENT_TYPE, "Content-Encoding" => "gzip", "Connection" => "close",
                    "User-Agent" => "sonde/#{VERSION}", "Connect-Protocol-Version" => "1" }
        headers["X-Scope-OrgID"] = @tenant if @tenant
        if @user || @password
          headers["Authorization"] = "Basic #{["#{@user}:#{@password}"].pack("m0")}"
        elsif @token
          headers["Authorization"] = "Bearer #{@token}"
        end
        headers
      end
    end
  end
end
