# frozen_string_literal: true

# A request of four seconds showed as 30 ms of wall time: the thread that was sampled was another one. And a sampler
# that met a moment at which nothing ran stopped for good.
# Right: the three parts of the request below its thread's name, and the main thread's wait beside them.
require_relative "support"

def timed(name)
  began = Foreign.now
  yield
  Foreign.note(name, Foreign.now - began)
end

def request_sleep
  sleep 0.6
end

def request_pipe(reader)
  reader.read(1)
end

def request_burn
  Foreign.burn(0.3)
end

Foreign.start
sleep 0.8 # nothing at all runs
reader, writer = IO.pipe
writing = Thread.new { sleep 1.0; writer.write("x") }
request = Thread.new do
  Thread.current.name = "request"
  timed("sleep") { request_sleep }
  timed("pipe") { request_pipe(reader) }
  timed("burn") { request_burn }
  :done
end
answer = request.value
writing.join
Foreign.stop
Foreign.verdict(("the request answered #{answer.inspect}" unless answer == :done))
