# frozen_string_literal: true

require_relative "measure"

# Programs whose work can be counted. run(seconds) works for about so long and answers how much was done.
module Loads
  # One thread, integers only.
  class Loop
    def run(seconds)
      finish = Measure.monotonic + seconds
      units = 0
      while Measure.monotonic < finish
        unit
        units += 1
      end
      units
    end

    def finish; end

    private

    def unit
      sum = 0
      i = 0
      while i < 20_000
        sum += step(i)
        i += 1
      end
      sum
    end

    def step(number)
      number & 3
    end
  end

  # What a small web application does for a request, without a server: hashes, strings, a stack of a hundred frames.
  class Requests < Loop
    MIDDLEWARE = 90

    def initialize
      @application = MIDDLEWARE.times.reduce(method(:respond)) do |inner, number|
        ->(environment) { layer(inner, environment, number) }
      end
    end

    private

    def unit
      @application.call("REQUEST_METHOD" => "GET", "PATH_INFO" => "/orders/17", "QUERY_STRING" => "page=3&sort=name")
    end

    def layer(inner, environment, number)
      environment["layer"] = number if (number % 10).zero?
      inner.call(environment)
    end

    def respond(environment)
      query = environment["QUERY_STRING"].split("&").map { |part| part.split("=", 2) }.to_h
      rows = Array.new(40) { |number| { id: number, name: "row #{number}", page: query["page"] } }
      body = rows.sort_by { |row| row[:name] }.map { |row| "<li>#{row[:id]}: #{row[:name]}</li>" }.join
      [200, { "content-length" => body.bytesize.to_s }, [body]]
    end
  end

  # Four threads that work a little and wait on a queue, ten thousand times a second.
  class Queues
    THREADS = 4
    WORK = 200

    def initialize
      @jobs = Queue.new
      @done = Queue.new
      @threads = Array.new(THREADS) { Thread.new { serve } }
    end

    def run(seconds)
      finish = Measure.monotonic + seconds
      units = 0
      while Measure.monotonic < finish
        THREADS.times { @jobs << WORK }
        THREADS.times { @done.pop }
        units += THREADS
      end
      units
    end

    def finish
      THREADS.times { @jobs << nil }
      @threads.each(&:join)
    end

    private

    def serve
      while (work = @jobs.pop)
        @done << (1..work).sum { |number| number & 7 }
      end
    end
  end

  ALL = { "loop" => Loop, "requests" => Requests, "queues" => Queues }.freeze
end
