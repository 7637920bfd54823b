# frozen_string_literal: true

# Run by test/integration/leaf_peek_test.rb with a build of Sonde made for testing: C functions whose jobs come only
# after they have returned, as in compiled code.
#
#   ruby -I LIBRARY test/support/leaf_peek.rb RETURNS on|off
#
# RETURNS: how many C functions must return before a waiting job comes (0: jobs do not wait); on, off: whether the top
# frame at the instant is looked at. Prints JSON: who has how much of the CPU in the profile, and the counters.
require "json"
require "sonde"
require_relative "pprof_decoder"

module LeafPeek
  NUMBERS = Array.new(60_000) { |i| (i * 2_654_435_761) % 1_000_003 }
  BASE = (1 << 2_400) + 12_345

  module_function

  def clock
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  # The C functions are called by these, which have the same place on the stack in turn.
  def sorts
    NUMBERS.sort
  end

  def powers
    BASE.pow(BASE, BASE - 2)
  end

  def others
    clock
  end

  def work(seconds)
    finish = clock + (seconds * 1_000_000_000).to_i
    while clock < finish
      sorts
      others
      powers
      others
    end
  end

  def run(returns, peek)
    testing = Sonde::Native::Testing
    testing.use_peek(peek)
    Sonde.start || abort(Sonde.unsupported_reason)
    testing.delay_jobs(returns)
    work(1.5)
    testing.delay_jobs(0)
    status = Sonde.status
    report(PprofDecoder.decode(Sonde.stop.to_pprof), status)
  end

  # Of the CPU used with one of the callers on the stack: by leaf and the frame below it.
  def report(profile, status)
    pairs = Hash.new(0)
    profile.samples.each do |sample|
      names = sample.frames.map(&:name) - ["(garbage collection)"]
      next unless names.any? { |name| name.match?(/LeafPeek\.(sorts|powers|others)\z/) }

      pairs[names.first(2).join(" < ")] += sample.values.fetch("cpu-time")
    end
    puts JSON.generate(pairs: pairs, status: status.select { |key, _| key.to_s.start_with?("peek") })
  end
end

LeafPeek.run(Integer(ARGV.fetch(0)), ARGV.fetch(1) == "on")
