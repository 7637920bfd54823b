# frozen_string_literal: true

require "json"
require "securerandom"
require_relative "container"
require_relative "datadog_names"
require_relative "http"

module Sonde
  module Export
    # Sends profiles to a Datadog agent, by TCP or a Unix socket, or without an agent straight to Datadog.
    #
    # Where to: the URL given, else DD_PROFILING_AGENTLESS=1 with DD_API_KEY and DD_SITE, else DD_TRACE_AGENT_URL, else
    # DD_AGENT_HOST and DD_TRACE_AGENT_PORT, else the agent's socket if there is one, else 127.0.0.1:8126.
    class Datadog
      Names = DatadogNames
      SOCKET = "/var/run/datadog/apm.socket"
      ORIGIN = "sonde"

      Part = Struct.new(:body, :boundary) do
        def bytesize
          body.bytesize
        end
      end

      def initialize(environment, target = nil)
        @environment = environment
        @agentless = target.nil? && environment.true?("DD_PROFILING_AGENTLESS")
        @key = environment["DD_API_KEY"]
        if @agentless && @key.nil?
          raise ArgumentError, "DD_PROFILING_AGENTLESS needs DD_API_KEY"
        end

        timeout = environment.float("DD_PROFILING_UPLOAD_TIMEOUT", 30.0, 0.1..600.0)
        @http = HTTP.new(target || address, again: Names::RETRIED, timeout: timeout, secrets: [@key])
        after_fork
      end

      def name
        "datadog"
      end

      def target
        @http.shown + path
      end

      def attempts
        Names::ATTEMPTS
      end

      def max_age
        nil
      end

      # A process has a name of its own there.
      def after_fork
        @runtime_id = SecureRandom.uuid
      end

      def encode(flushed)
        profile = flushed.profile.reshape(types: Names::TYPES, labels: Names::LABELS)
        return [] if profile.sample_count.zero?

        pprof = profile.to_pprof
        if pprof.bytesize > Names::MAX_BYTES
          raise Error, "it has #{pprof.bytesize} bytes, more than the #{Names::MAX_BYTES} that Datadog takes"
        end
        boundary = "sonde#{SecureRandom.hex(12)}"
        [Part.new(multipart(boundary, JSON.generate(event(flushed)), pprof), boundary)]
      end

      def deliver(part)
        @http.post(path, part.body, headers(part.boundary))
      end

      def inspect
        "#<#{self.class} #{target}>"
      end

      private

      def path
        @agentless ? Names::AGENTLESS_PATH : Names::AGENT_PATH
      end

      def address
        return "https://intake.profile.#{@environment["DD_SITE"] || "datadoghq.com"}" if @agentless

        url = @environment["DD_TRACE_AGENT_URL"]
        return url if url

        host, port = %w[DD_AGENT_HOST DD_TRACE_AGENT_PORT].map { |name| @environment[name] }
        return "unix://#{SOCKET}" if host.nil? && port.nil? && ::File.socket?(SOCKET)

        host ||= "127.0.0.1"
        host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
        "http://#{host}:#{port || 8126}"
      end

      def headers(boundary)
        headers = { "Content-Type" => "multipart/form-data; boundary=#{boundary}", "Connection" => "close",
                    "User-Agent" => "sonde/#{VERSION}", "DD-EVP-ORIGIN" => ORIGIN, "DD-EVP-ORIGIN-VERSION" => VERSION }
        headers["DD-API-KEY"] = @key if @agentless
        container = Container.id
        headers["Datadog-Container-ID"] = container if container
        entity = container ? "ci-#{container}" : Container.inode && "in-#{Container.inode}"
        headers["Datadog-Entity-ID"] = entity if entity
        external = @environment["DD_EXTERNAL_ENV"]
        headers["Datadog-External-Env"] = external if external
        headers
      end

      def multipart(boundary, event, pprof)
        [part(boundary, "event", "event.json", "application/json", event),
         part(boundary, Names::ATTACHMENT, Names::ATTACHMENT, "application/octet-stream", pprof),
         "--#{boundary}--\r\n"].map(&:b).join
      end

      def part(boundary, name, filename, type, body)
        "--#{boundary}\r\nContent-Disposition: form-data; name=\"#{name}\"; filename=\"#{filename}\"\r\n" \
          "Content-Type: #{type}\r\n\r\n".b + body.b + "\r\n".b
      end

      def event(flushed)
        event = { "attachments" => [Names::ATTACHMENT], "tags_profiler" => tags(flushed),
                  "start" => time(flushed.start), "end" => time(flushed.finish),
                  "family" => "ruby", "version" => "4", "internal" => {}, "info" => info }
        event["endpoint_counts"] = flushed.endpoints unless flushed.endpoints.empty?
        event
      end

      def time(time)
        time.getutc.strftime("%Y-%m-%dT%H:%M:%S.%NZ")
      end

      # Ours win over those of the same name that the user gives.
      def tags(flushed)
        given = @environment.pairs(@environment["DD_TAGS"].to_s.tr(" ", ","), ":").merge(@environment.tags)
        all = given.merge(own_tags(flushed)).reject { |_, value| value.nil? }
        all.map { |key, value| tag(key, value) }.compact.join(",")
      end

      def own_tags(flushed)
        { "language" => "ruby", "runtime" => "ruby",
          "runtime_engine" => RUBY_ENGINE, "runtime_version" => RUBY_VERSION, "runtime_platform" => RUBY_PLATFORM,
          "runtime-id" => @runtime_id, "process_id" => ::Process.pid,
          "host" => @environment["DD_HOSTNAME"] || @environment.hostname, "profiler_version" => VERSION,
          "profile_seq" => flushed.number, "service" => @environment.service, "env" => @environment.deployment,
          "version" => @environment.version, "git.repository_url" => @environment["DD_GIT_REPOSITORY_URL"],
          "git.commit.sha" => @environment["DD_GIT_COMMIT_SHA"] }
      end

      # A comma would end the tag, and nothing escapes it. What has no name or no value is refused there.
      def tag(key, value)
        key, value = [key, value].map { |text| text.to_s.scrub("?").tr(",", "_").strip }
        return if key.empty? || value.empty? || value.end_with?(":")

        "#{key}:#{value}"[0, Names::TAG_LENGTH].chomp(":")
      end

      def info
        @info ||= { "platform" => { "hostname" => @environment.hostname }, "profiler" => { "version" => VERSION },
                    "runtime" => { "engine" => RUBY_ENGINE, "version" => RUBY_VERSION, "platform" => RUBY_PLATFORM },
                    "application" => { "env" => @environment.deployment, "service" => @environment.service,
                                       "version" => @environment.version } }
      end
    end
  end
end
