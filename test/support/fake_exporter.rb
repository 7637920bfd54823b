# frozen_string_literal: true

# Takes what it is given, or fails as the test says.
class FakeExporter
  attr_reader :delivered, :tries, :encoded
  attr_accessor :attempts, :max_age, :failures, :gate, :encoding_error

  def initialize(name = "fake")
    @name = name
    @delivered = Queue.new
    @tries = Queue.new
    @encoded = []
    @failures = [] # one for each try, nil: it works
    @attempts = 3
  end

  attr_reader :name

  def target
    "nowhere"
  end

  def encode(flushed)
    raise encoding_error if encoding_error

    @encoded << flushed
    [flushed.pprof]
  end

  def deliver(part)
    @tries << Process.clock_gettime(Process::CLOCK_MONOTONIC)
    gate&.pop
    failure = @failures.shift
    raise failure if failure

    @delivered << part
  end

  def all
    Array.new(@delivered.size) { @delivered.pop }
  end
end
