# frozen_string_literal: true

# At its end a process waited until its last profile was uploaded; where the receiver was slow, for ever. People pressed
# Ctrl-C and thought that it hung.
# Right: an end takes no more than a second or two. The receiver here takes connections and never answers.
# Not tested here: uploads. Nothing in these programs sends a profile anywhere; what is tested is that the ends of a
# profiled process wait for nothing.
require_relative "support"
require "rbconfig"
require "socket"

LIMIT = 20 # seconds, on a busy machine; one that waits would take 60
TAILS = { "a normal end" => "", "SIGTERM" => "Process.kill(:TERM, Process.pid); sleep 60",
          "exit in a thread" => "Thread.new { exit 0 }.join" }.freeze

server = TCPServer.new("127.0.0.1", 0)
taken = []
Thread.new { loop { taken << server.accept } } # never read, never answered
environment = { "FOREIGN_URL" => "http://127.0.0.1:#{server.addr[1]}", "FOREIGN_PROFILE" => nil }
slow = TAILS.map do |what, tail|
  began = Foreign.now
  code = "200_000.times { |i| i.to_s }; #{tail}"
  Process.wait(spawn(environment, RbConfig.ruby, *Foreign.child(code), err: File::NULL))
  took = Foreign.now - began
  "#{what} took #{took.round(2)} s" if took > LIMIT
end
Foreign.verdict(slow)
