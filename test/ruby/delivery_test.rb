# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/fake_exporter"

# The queue and the thread of one exporter.
class DeliveryTest < Minitest::Test
  Failure = Sonde::Report::Failure

  def setup
    @exporter = FakeExporter.new
    @output = StringIO.new
    @delivery = Sonde::Report::Delivery.new(@exporter, voice: Sonde::Report::Voice.new(@output))
  end

  def teardown
    finish(0)
  end

  def finish(seconds = 20)
    @delivery.finish
    @delivery.wait(Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds)
  end

  def dropped
    @delivery.status[:dropped].reject { |_, count| count.zero? }
  end

  def eventually(seconds = 20)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    sleep 0.01 until (value = yield) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
    assert value, "did not happen within #{seconds} s"
  end

  def test_delivers_in_order
    20.times { |i| @delivery.push(["#{i}"]); Thread.pass until @delivery.status[:waiting] < 4 }
    finish
    assert_equal Array.new(20, &:to_s), @exporter.all
    assert_equal 20, @delivery.status[:delivered]
    assert_empty dropped
    assert_empty @output.string
  end

  def test_the_oldest_of_too_many_is_dropped_counted_and_said_once
    @exporter.gate = Queue.new
    @delivery.push(["first"])
    eventually { @exporter.tries.size == 1 }
    20.times { |i| @delivery.push(["#{i}"]) }
    assert_equal({ queue_full: 20 - Sonde::Report::Delivery::WAITING }, dropped)
    assert_operator @delivery.status[:waiting], :<=, Sonde::Report::Delivery::WAITING + 1
    30.times { @exporter.gate << true }
    finish
    assert_equal %w[first] + (12..19).map(&:to_s), @exporter.all
    assert_equal 1, @output.string.lines.size
    assert_match(/profiles for fake were dropped, since too many wait/, @output.string)
  end

  def test_what_waits_is_bounded_in_bytes_too
    @exporter.gate = Queue.new
    big = "x" * (Sonde::Report::Delivery::BYTES / 2 - 1)
    6.times { @delivery.push([big]) }
    assert_operator @delivery.status[:waiting_bytes], :<=, Sonde::Report::Delivery::BYTES * 3 / 2
    assert_operator dropped[:queue_full], :>=, 3
  end

  def test_a_failure_is_tried_again_after_a_pause
    @exporter.failures = [Failure.new("busy", again: true)]
    @delivery.push(["a"])
    eventually { @delivery.status[:delivered] == 1 }
    first, second = Array.new(2) { @exporter.tries.pop }
    assert_operator second - first, :>=, 0.5
    assert_equal 1, @delivery.status[:retries]
    assert_equal "busy", @delivery.status[:last_error]
    assert_empty dropped
  end

  def test_retry_after_is_obeyed
    @exporter.failures = [Failure.new("busy", again: true, after: 2)]
    @delivery.push(["a"])
    eventually { @delivery.status[:delivered] == 1 }
    first, second = Array.new(2) { @exporter.tries.pop }
    assert_operator second - first, :>=, 2.0
  end

  def test_a_refusal_is_not_tried_again_and_said_once
    @exporter.failures = Array.new(3) { Failure.new("403: no such key") }
    3.times { @delivery.push(["a"]) }
    @delivery.push(["b"])
    finish
    assert_equal({ refused: 3 }, dropped)
    assert_equal ["b"], @exporter.all
    assert_equal 4, @exporter.tries.size
    assert_equal ["sonde: profiles for fake were refused: 403: no such key. This is said once; Sonde.status counts " \
                  "what is lost\n"], @output.string.lines
  end

  def test_attempts_are_bounded
    @exporter.attempts = 2
    @exporter.failures = Array.new(2) { Failure.new("down", again: true, after: 0) }
    @delivery.push(["a"])
    eventually { dropped == { failed: 1 } }
    assert_equal 2, @exporter.tries.size
  end

  def test_what_is_too_old_is_dropped
    now = 0.0
    delivery = Sonde::Report::Delivery.new(@exporter, voice: Sonde::Report::Voice.new(@output), clock: -> { now })
    @exporter.max_age = 100
    @exporter.gate = Queue.new
    2.times { delivery.push(["a"]) }
    eventually { @exporter.tries.size == 1 }
    now = 101.0
    @exporter.gate << true
    eventually { delivery.status[:dropped][:too_old] == 1 }
    assert_equal 1, delivery.status[:delivered]
    delivery.finish
  end

  # Parts that were taken are not sent twice.
  def test_of_several_parts_only_what_failed_is_tried_again
    @exporter.failures = [nil, Failure.new("busy", again: true, after: 0)]
    @delivery.push(%w[a b c])
    eventually { @delivery.status[:delivered] == 1 }
    assert_equal %w[a b c], @exporter.all
    assert_equal 4, @exporter.tries.size
  end

  def test_at_the_end_nothing_is_retried
    @exporter.failures = [Failure.new("down", again: true, after: 3000)]
    5.times { @exporter.failures << Failure.new("down", again: true) }
    3.times { @delivery.push(["a"]) }
    eventually { @exporter.tries.size == 1 }
    finish
    assert_equal({ at_exit: 3 }, dropped)
    assert_operator @exporter.tries.size, :<=, 4
  end

  def test_the_end_is_bounded
    @exporter.gate = Queue.new
    2.times { @delivery.push(["a"]) }
    eventually { @exporter.tries.size == 1 }
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    finish(0.2)
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, :<, 10
    assert_equal({ at_exit: 2 }, dropped)
  end

  def test_an_exporter_that_breaks_is_an_error_like_any_other
    @exporter.failures = [NoMethodError.new("planned"), NotImplementedError.new("planned too")]
    2.times { @delivery.push(["a"]) }
    @delivery.push(["b"])
    finish
    assert_equal ["b"], @exporter.all
    assert_equal({ refused: 2 }, dropped)
  end

  def test_a_thread_that_was_killed_is_replaced
    @delivery.push(["a"])
    eventually { @delivery.status[:delivered] == 1 }
    Thread.list.find { |thread| thread.name == "sonde reporter fake" }.kill.join
    @delivery.push(["b"])
    eventually { @delivery.status[:delivered] == 2 }
  end

  def test_a_closed_stderr_harms_nobody
    @output.close_write
    @exporter.failures = [Failure.new("no")]
    @delivery.push(["a"])
    finish
    assert_equal({ refused: 1 }, dropped)
  end
end
