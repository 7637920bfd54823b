# frozen_string_literal: true

require "test_helper"
require "stringio"
require "timeout"
require "support/fake_exporter"
require "support/pprof_decoder"

# The reporting thread, with the real engine.
class ReporterTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
    @reporter = nil
    @exporter = FakeExporter.new
    @output = StringIO.new
  end

  def teardown
    @reporter&.stop
  end

  def start(exporters = [@exporter], **options)
    @reporter = Sonde::Reporter.new(exporters, voice: Sonde::Report::Voice.new(@output), **options)
    assert_equal true, @reporter.start(Sonde::Configuration.new)
    @reporter
  end

  def wait_until(seconds = 20)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    sleep 0.01 until yield || Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
    assert yield
  end

  def test_delivers_again_and_again_and_at_the_end
    start(interval: 0.2)
    burn(0.2)
    wait_until { @exporter.delivered.size >= 3 }
    burn(0.1)
    @reporter.stop
    profiles = @exporter.all.map { |bytes| PprofDecoder.decode(bytes) }
    assert_operator profiles.sum { |profile| profile.total("cpu-time") }, :>=, 280_000_000
    profiles.each_cons(2) { |a, b| assert_in_delta a.time_nanos + a.duration_nanos, b.time_nanos, 1_000_000 }
    assert_equal @exporter.encoded.map(&:number), (0...profiles.size).to_a
    assert_equal [@exporter.encoded.last], @exporter.encoded.select(&:last?)
  end

  def test_the_period_is_jittered_around_the_interval
    due = Array.new(50) do
      reporter = Sonde::Reporter.new([], interval: 60)
      reporter.send(:plan)
      reporter.instance_variable_get(:@due) - Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    due.each { |seconds| assert_includes 53.0..66.1, seconds }
    assert_operator due.max - due.min, :>, 2
  end

  # As in a forked child, where the hook that begins anew lets nothing in.
  def test_its_threads_can_be_interrupted_whatever_their_maker_has_masked
    timed = Queue.new
    @exporter.define_singleton_method(:deliver) do |_|
      Timeout.timeout(60) { nil } # up to Ruby 3.1 this ends a thread of its own
      timed << Thread.pending_interrupt?
    end
    Thread.handle_interrupt(Object => :never) { start.flush }
    wait_until(30) { timed.size == 1 }
  end

  def test_on_demand
    start
    burn(0.1)
    profile = @reporter.flush
    assert_operator profile.totals.fetch("cpu-time"), :>, 80_000_000
    wait_until { @exporter.delivered.size == 1 }
    delivered = PprofDecoder.decode(@exporter.all.first)
    assert_equal profile.totals, delivered.totals
    # The caller's is his own, whatever the exporters do with theirs.
    refute_same profile, @exporter.encoded.first.profile
  end

  def test_its_threads_are_in_the_profile_under_their_names
    start
    @reporter.flush
    wait_until { @exporter.delivered.size == 1 }
    @reporter.flush
    wait_until { @exporter.delivered.size == 2 }
    names = PprofDecoder.decode(@exporter.all.last).samples.map { |sample| sample.labels["thread name"] }
    assert_includes names, "sonde reporter"
    assert_includes names, "sonde reporter fake"
  end

  def test_one_exporter_that_hangs_keeps_nobody_waiting
    slow = FakeExporter.new("slow")
    slow.gate = Queue.new
    broken = FakeExporter.new("broken")
    broken.encoding_error = RuntimeError.new("planned")
    start([slow, broken, @exporter], interval: 0.1, exit_timeout: 0.3)
    wait_until { @exporter.delivered.size >= 3 }
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    @reporter.stop
    assert_operator Process.clock_gettime(Process::CLOCK_MONOTONIC) - started, :<, 10
    by_name = @reporter.status.map { |status| [status[:name], status] }.to_h
    assert_operator by_name["slow"][:dropped][:at_exit], :>=, 1
    assert_operator by_name["broken"][:dropped][:unencodable], :>=, 3
    assert_equal 0, by_name["fake"][:dropped].values.sum
    assert_match(/broken cannot be put into its format \(RuntimeError: planned\)/, @output.string)
  end

  def test_a_signal_handler_may_flush_and_stop
    start
    answers = Queue.new
    previous = trap("USR2") { answers << [@reporter.flush, @reporter.stop] }
    Process.kill("USR2", Process.pid)
    flushed, stopped = answers.pop
    assert_instance_of Sonde::Profile, flushed
    assert_instance_of Sonde::Profile, stopped
    assert_equal 2, @exporter.delivered.size
  ensure
    trap("USR2", previous || "DEFAULT")
  end

  def test_it_is_independent_of_other_profiles
    start
    profile = Sonde.profile { burn(0.1) }
    assert_operator profile.totals.fetch("cpu-time"), :>, 80_000_000
    assert_operator @reporter.flush.totals.fetch("cpu-time"), :>, 80_000_000
  end

  def test_a_process_that_was_not_left_after_all_goes_on
    start
    @reporter.leave
    assert_equal 1, @exporter.delivered.size
    @reporter.stay
    @reporter.flush
    wait_until { @exporter.delivered.size == 2 }
  end

  def test_the_programs_random_numbers_stay_what_they_were
    srand(42)
    expected = Array.new(3) { rand(1 << 30) }
    srand(42)
    start(interval: 0.1)
    wait_until { @exporter.delivered.size >= 1 }
    assert_equal expected, Array.new(3) { rand(1 << 30) }
  end
end
