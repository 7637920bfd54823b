# frozen_string_literal: true

require "net/http"
require "socket"
require "time"
require "timeout"
require "uri"
require_relative "../report/failure"
require_relative "../report/environment"

module Sonde
  module Export
    # Sends a request by Ruby's own Net::HTTP (TLS, the proxies of the environment, timeouts), or over a Unix socket,
    # and judges the answer. Every request has a connection of its own: there is one a minute.
    class HTTP
      # What there is no answer to. The other side may have got the request all the same.
      TROUBLES = [SystemCallError, SocketError, IOError, Timeout::Error, Net::ProtocolError, Net::HTTPBadResponse,
                  Net::HTTPHeaderSyntaxError].freeze
      # Tracers shall not make a trace of it. (This is what Datadog's own requests say; see also {untraced}.)
      UNTRACED = { "DD-Internal-Untraced-Request" => "1" }.freeze
      OPEN_TIMEOUT = 5
      ANSWER_BYTES = 65_536
      SHOWN = 200 # characters of an answer

      Answer = Struct.new(:status, :body, :retry_after)

      # A Net::HTTP that connects to a socket in the file system.
      class Unix < Net::HTTP
        def self.for(path)
          http = new("localhost", 80, nil)
          http.instance_variable_set(:@sonde_path, path)
          http
        end

        private

        def connect
          socket = Timeout.timeout(@open_timeout, Net::OpenTimeout) { UNIXSocket.new(@sonde_path) }
          @socket = Net::BufferedIO.new(socket, read_timeout: @read_timeout, write_timeout: @write_timeout)
        end
      end

      attr_reader :shown

      # base:: "http://...", "https://..." or "unix:///path"; a user and password in it are sent as Basic auth
      # again:: the statuses after which another attempt makes sense; without any answer it always does
      # timeout:: seconds that one request may take altogether
      def initialize(base, again:, timeout: 10, secrets: [])
        @uri = HTTP.parse(base)
        @again = again
        @timeout = timeout
        @secrets = secrets.compact.reject(&:empty?)
        @basic = take_password
        @shown = unix? ? "unix://#{@uri.path}" : @uri.to_s
      end

      # OpenSSL is loaded by Net::HTTP when it is needed.
      def self.troubles
        TROUBLES + ($LOADED_FEATURES.grep(%r{/openssl\.rb\z}).any? ? [OpenSSL::SSL::SSLError] : [])
      end

      def self.parse(text)
        uri = URI.parse(text.to_s)
        valid = uri.is_a?(URI::HTTP) ? !uri.host.to_s.empty? : uri.scheme == "unix" && !uri.path.to_s.empty?
        raise ArgumentError unless valid

        uri
      rescue URI::Error, ArgumentError
        # What is wrong may contain a password.
        raise ArgumentError, "a URL is wrong: #{text.to_s.gsub(%r{//[^/@\s]*@}, "//#{Report::Environment::MASK}@")} " \
                             "(allowed: http://host:port, https://host or unix:///path)"
      end

      # Posts to a path below the base. Answers what came back where that means success; raises Failure.
      def post(path, body, headers)
        request = Net::HTTP::Post.new(whole_path(path), headers.merge(UNTRACED))
        request.basic_auth(*@basic) if @basic && !headers.key?("Authorization")
        request.body = body
        judge(untraced { Timeout.timeout(@timeout) { exchange(request) } })
      rescue *HTTP.troubles => e
        raise Report::Failure.new(clean("#{@shown}: #{e.class}: #{e.message}"), again: true)
      end

      # Nobody shall see what is in here by accident.
      def inspect
        "#<#{self.class} #{@shown}>"
      end

      private

      def take_password
        return if @uri.scheme == "unix" || @uri.userinfo.nil?

        pair = @uri.userinfo.split(":", 2).map { |part| URI.decode_www_form_component(part) }
        @secrets += [pair.last, @uri.userinfo]
        @uri = URI.parse(@uri.to_s.sub(%r{//[^/@]*@}, "//"))
        [pair.first, pair[1].to_s]
      end

      def unix?
        @uri.scheme == "unix"
      end

      # A path of the base is kept in front.
      def whole_path(path)
        unix? ? path : @uri.path.chomp("/") + path
      end

      def client
        http = unix? ? Unix.for(@uri.path) : Net::HTTP.new(@uri.hostname, @uri.port)
        http.use_ssl = @uri.scheme == "https"
        http.open_timeout = [OPEN_TIMEOUT, @timeout].min
        http.read_timeout = http.write_timeout = @timeout
        http.max_retries = 0
        http
      end

      def exchange(request)
        client.start do |http|
          body = +"".b
          response = http.request(request) do |answer|
            # A body that never ends is no reason to fill the memory.
            answer.read_body { |piece| body << piece.b if body.bytesize < ANSWER_BYTES }
          end
          Answer.new(response.code.to_i, body, retry_after(response["Retry-After"]))
        end
      end

      def untraced(&block)
        return yield unless defined?(::OpenTelemetry::Common::Utilities)

        ::OpenTelemetry::Common::Utilities.untraced(&block)
      end

      # Seconds or a date.
      def retry_after(text)
        return if text.nil?
        return text.to_f if text.match?(/\A\s*\d+(\.\d+)?\s*\z/)

        [Time.httpdate(text) - Time.now, 0].max
      rescue ArgumentError
        nil
      end

      def judge(answer)
        return answer if (200..299).cover?(answer.status)

        said = answer.body.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(/[^[:print:]]+/, " ").strip[0, SHOWN]
        message = "#{@shown} answered #{answer.status}#{": #{said}" unless said.empty?}"
        raise Report::Failure.new(clean(message), again: @again.include?(answer.status), after: answer.retry_after)
      end

      # An answer, or an error, may repeat what it was sent.
      def clean(text)
        @secrets.reduce(text) { |cleaned, secret| cleaned.gsub(secret, Report::Environment::MASK) }
      end
    end
  end
end
