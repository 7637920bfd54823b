# frozen_string_literal: true

require "test_helper"
require "support/fake_native"

class SessionTest < Minitest::Test
  def setup
    @engine = FakeEngine.new
    @session = Sonde::Session.new(@engine)
    @configuration = Sonde::Configuration.new
  end

  def test_runs_from_start_to_stop
    refute @session.running?
    assert_equal true, @session.start(@configuration)
    assert @session.running?
    refute_nil @session.stop
    refute @session.running?
    assert_empty @engine.open_windows
  end

  def test_stopping_or_flushing_what_does_not_run_answers_nil
    assert_nil @session.stop
    assert_nil @session.flush
  end

  def test_a_second_start_is_refused_and_leaves_the_running_window_alone
    @session.start(@configuration)
    assert_equal false, @session.start(@configuration)
    assert_equal 1, @engine.windows.size
    assert_equal 1, @engine.open_windows.size
  end

  def test_starts_again_after_stop
    3.times do
      assert_equal true, @session.start(@configuration)
      refute_nil @session.stop
    end
    assert_equal 3, @engine.windows.size
  end

  def test_flush_keeps_the_window
    @session.start(@configuration)
    2.times { refute_nil @session.flush }
    assert @session.running?
    assert_equal 2, @engine.windows.first.flushes
  end

  def test_starts_after_a_start_that_failed
    @engine.failure = Sonde::Error.new("not today")
    assert_raises(Sonde::Error) { @session.start(@configuration) }
    @engine.failure = nil
    assert_equal true, @session.start(@configuration)
  end

  def test_six_threads_starting_and_stopping_neither_raise_nor_lose_a_profile
    @engine.delay = 0.0005
    results = Array.new(6) do
      Thread.new do
        Array.new(30) { [@session.start(@configuration), @session.stop] }
      end
    end.flat_map(&:value)
    @session.stop
    opened = results.count { |started, _| started }
    assert_operator opened, :>=, 1
    assert_equal opened, @engine.windows.size
    assert_empty @engine.open_windows
    handed_out = results.map(&:last).compact
    assert_equal handed_out, handed_out.uniq
  end

  def test_two_threads_stopping_at_once_get_one_profile
    20.times do
      @session.start(@configuration)
      @engine.delay = 0.001
      profiles = Array.new(2) { Thread.new { @session.stop } }.map(&:value)
      assert_equal 1, profiles.compact.size
      @engine.delay = nil
    end
  end

  def test_every_method_works_in_a_signal_handler
    answers = Queue.new
    previous = trap("USR2") do
      answers << [@session.start(@configuration), @session.running?, !@session.flush.nil?, !@session.stop.nil?]
    rescue StandardError => e
      answers << e
    end
    Process.kill("USR2", Process.pid)
    assert_equal [true, true, true, true], answers.pop
  ensure
    trap("USR2", previous)
  end

  def test_a_signal_handler_that_interrupts_a_start_gives_up_instead_of_waiting
    answers = Queue.new
    previous = trap("USR2") { answers << [@session.start(@configuration), @session.stop] }
    @engine.delay = 0.2
    killer = Thread.new { sleep 0.05; Process.kill("USR2", Process.pid) }
    assert_equal true, @session.start(@configuration)
    assert_equal [false, nil], answers.pop
    assert @session.running?
  ensure
    killer&.join
    trap("USR2", previous)
  end

  def test_an_asynchronous_exception_waits_for_the_end_of_a_stop
    @session.start(@configuration)
    @engine.delay = 0.1
    kept = nil
    thread = Thread.new do
      Thread.current.report_on_exception = false
      kept = @session.stop
      sleep
    end
    sleep 0.03
    thread.raise("now")
    assert_raises(RuntimeError) { thread.join }
    assert_empty @engine.open_windows
    assert_equal 1, @engine.profiles.size
    refute @session.running?
    assert(kept.nil? || kept == @engine.profiles.first)
  end

  def test_threads_killed_at_any_moment_leave_no_window_behind
    25.times do |i|
      thread = Thread.new { loop { @session.start(@configuration); @session.stop } }
      sleep 0.0002 * (i % 10)
      thread.kill.join
      @session.stop
      assert_empty @engine.open_windows
      assert_equal true, @session.start(@configuration)
      @session.stop
    end
  end
end
