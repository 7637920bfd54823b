# frozen_string_literal: true

require "socket"
require "stringio"
require "tmpdir"
require "zlib"

# An HTTP server that keeps what it is sent, and answers as the test tells it to: plain sockets, so that it can also
# misbehave. Every test of an exporter goes through one of these.
#
#   RecordingServer.open { |server| ... server.url ... server.requests }
#   server.answers << 503 << [429, { "Retry-After" => "2" }] << :close << :reset << 200
#
# Answers are used up one by one; when there are none left it is 200.
class RecordingServer
  Request = Struct.new(:method, :path, :headers, :body, :at) do
    # Without its compression.
    def plain
      headers["content-encoding"] == "gzip" ? Zlib.gunzip(body) : body
    end

    # { part name => [headers, body] } of a multipart body.
    def parts
      boundary = headers.fetch("content-type")[/boundary=(\S+)/, 1]
      body.split("--#{boundary}".b)[1..-2].map do |part|
        head, content = part.delete_prefix("\r\n").split("\r\n\r\n".b, 2)
        fields = head.lines.map { |line| line.chomp.split(": ", 2) }.map { |k, v| [k.downcase, v] }.to_h
        [fields.fetch("content-disposition")[/name="([^"]+)"/, 1], [fields, content.delete_suffix("\r\n")]]
      end.to_h
    end
  end

  attr_reader :answers, :port
  # Whether to hang up in the middle of what comes.
  attr_accessor :cut

  def self.open(**options)
    server = new(**options)
    yield server
  ensure
    server&.close
  end

  # socket: a path, for a server on a Unix socket.
  def initialize(socket: nil)
    @socket = socket
    @server = socket ? UNIXServer.new(socket) : TCPServer.new("127.0.0.1", 0)
    @port = socket ? nil : @server.addr[1]
    @answers = Queue.new
    @requests = Queue.new
    @thread = Thread.new { loop { serve(@server.accept) } }
    @thread.report_on_exception = false
  end

  def url
    "http://127.0.0.1:#{@port}"
  end

  def close
    @thread.kill.join
    @server.close unless @server.closed?
    File.unlink(@socket) if @socket && File.exist?(@socket)
  end

  # All so far.
  def requests
    @seen ||= []
    @seen << @requests.pop until @requests.empty?
    @seen
  end

  # Waits until there are so many.
  def wait_for(count, seconds = 20)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until requests.size >= count
      raise "#{requests.size} requests after #{seconds} s, #{count} wanted" if
        Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish

      sleep 0.01
    end
    requests
  end

  private

  def serve(client)
    Thread.new do
      begin
        next client.readpartial(1) if cut

        request = read(client)
        @requests << request if request
        answer(client) if request
      rescue SystemCallError, IOError
        nil # the client went away
      ensure
        client.close
      end
    end
  end

  def read(client)
    first = client.gets
    return if first.nil?

    method, path, = first.split
    headers = {}
    while (line = client.gets) && line != "\r\n"
      name, value = line.chomp.split(": ", 2)
      headers[name.downcase] = value
    end
    body = client.read(headers["content-length"].to_i)
    Request.new(method, path, headers, body, Process.clock_gettime(Process::CLOCK_MONOTONIC))
  end

  def answer(client)
    status, headers, body = @answers.empty? ? 200 : @answers.pop
    case status
    when :close then nil
    when :reset then client.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii"))
    when :hang then sleep
    when :half then client.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of")
    else
      body ||= ""
      lines = { "Content-Length" => body.bytesize, "Connection" => "close" }.merge(headers || {})
      client.write("HTTP/1.1 #{status} X\r\n#{lines.map { |k, v| "#{k}: #{v}\r\n" }.join}\r\n#{body}")
    end
  end
end
