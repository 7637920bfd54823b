# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "timeout"
require "tmpdir"

# The public methods, with the real engine.
class SondeTest < Minitest::Test
  include TestHelper

  def teardown
    Sonde.stop
  end

  def test_start_and_stop
    need_extension
    refute Sonde.running?
    assert_equal true, Sonde.start
    assert Sonde.running?
    burn(0.1)
    profile = Sonde.stop
    assert_instance_of Sonde::Profile, profile
    assert_in_delta 0.1, profile.totals.fetch("cpu-time") / 1e9, 0.08
    refute Sonde.running?
  end

  def test_stopping_and_flushing_when_nothing_runs_answer_nil
    assert_nil Sonde.stop
    assert_nil Sonde.flush
  end

  def test_a_second_start_answers_false_and_leaves_the_first_alone
    need_extension
    Sonde.start(modes: [:cpu])
    burn(0.05)
    assert_equal false, Sonde.start(modes: [:wall])
    profile = Sonde.stop
    assert_includes profile.totals.keys, "cpu-time"
    assert_operator profile.totals["cpu-time"], :>, 40_000_000
    assert_nil Sonde.stop
  end

  def test_flush_divides_the_time
    need_extension
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    Sonde.start
    parts = Array.new(3) { burn(0.05); Sonde.flush } << Sonde.stop
    elapsed = Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    assert_in_delta elapsed, parts.sum(&:duration), 0.05
    parts.each_cons(2) { |a, b| assert_in_delta a.finish.to_f, b.start.to_f, 0.001 }
    assert_in_delta 0.15, parts.sum { |part| part.totals["cpu-time"] } / 1e9, 0.05
  end

  def test_profile_answers_the_profile_of_the_block
    need_extension
    profile = Sonde.profile { burn(0.1) }
    assert_in_delta 0.1, profile.totals["cpu-time"] / 1e9, 0.05
    assert_includes profile.top(cumulative: true, limit: 50).map(&:name).join("\n"), "burn"
    refute Sonde::Native.running?
  end

  def test_profile_closes_its_window_however_the_block_ends
    need_extension
    assert_raises(RuntimeError) { Sonde.profile { raise "planned" } }
    assert_equal(3, catch(:out) { Sonde.profile { throw :out, 3 } })
    assert_equal(4, returning)
    assert_raises(Timeout::Error) { Timeout.timeout(0.1) { Sonde.profile { sleep 5 } } }
    thread = Thread.new { Sonde.profile { sleep 5 } }
    sleep 0.05
    thread.kill.join
    refute Sonde::Native.running?
  end

  def test_profile_needs_a_block
    assert_match(/no block given/, assert_raises(ArgumentError) { Sonde.profile }.message)
  end

  def test_nested_blocks_have_profiles_of_their_own
    need_extension
    inner = nil
    outer = Sonde.profile { burn(0.05); inner = Sonde.profile { burn(0.05) } }
    assert_in_delta 0.1, outer.totals["cpu-time"] / 1e9, 0.05
    assert_in_delta 0.05, inner.totals["cpu-time"] / 1e9, 0.03
  end

  def test_blocks_in_parallel_and_a_running_profile_do_not_disturb_each_other
    need_extension
    Sonde.start
    profiles = Array.new(4) { Thread.new { Sonde.profile { burn(0.05) } } }.map(&:value)
    assert(profiles.all? { |profile| profile.totals["cpu-time"] > 40_000_000 })
    assert Sonde.running?
    assert_operator Sonde.stop.totals["cpu-time"], :>, 180_000_000
  end

  # bug log B22
  def test_six_threads_may_start_and_stop
    need_extension
    threads = Array.new(6) do |job|
      Thread.new do
        Array.new(8) do |i|
          Sonde.start
          500.times { |k| "job #{job} #{i} #{k}" }
          Sonde.stop
        end
      end
    end
    profiles = threads.flat_map(&:value).compact
    assert_operator profiles.size, :>=, 1
    Sonde.stop
    refute Sonde::Native.running?
  end

  def test_threads_killed_anywhere_in_start_flush_and_stop
    need_extension
    20.times do |i|
      thread = Thread.new { loop { Sonde.start; Sonde.flush; Sonde.stop } }
      sleep 0.001 * (i % 5)
      thread.kill.join
      Sonde.stop
      refute Sonde::Native.running?
    end
  end

  def test_works_in_a_signal_handler
    need_extension
    answers = Queue.new
    previous = trap("USR2") do
      answers << [Sonde.start, Sonde.running?, Sonde.flush.class, Sonde.status.class, Sonde.stop.class]
    rescue StandardError => e
      answers << e
    end
    Process.kill("USR2", Process.pid)
    assert_equal [true, true, Sonde::Profile, Hash, Sonde::Profile], answers.pop
  ensure
    trap("USR2", previous || "DEFAULT")
  end

  def test_wrong_options_raise_and_the_block_does_not_run
    ran = false
    assert_raises(ArgumentError) { Sonde.profile(rate: -1) { ran = true } }
    refute ran
    assert_match(/unknown option speed: 1/, assert_raises(ArgumentError) { Sonde.start(speed: 1) }.message)
    refute Sonde.running?
  end

  def test_status
    need_extension
    assert_equal false, Sonde.status.fetch(:started)
    Sonde.start
    burn(0.1)
    status = Sonde.status
    assert_equal [true, true], status.values_at(:supported, :started)
    assert_operator status.fetch(:samples), :>, 0
    %i[effective_rate own_cpu_ns longest_pause_ns memory_bytes drops].each { |key| assert status.key?(key), key.to_s }
  end

  def test_where_there_is_no_engine_it_says_so_once_and_does_nothing
    code = <<~'RUBY'
      require "sonde"
      p Sonde.supported?, Sonde.start, Sonde.start, Sonde.running?, Sonde.flush, Sonde.stop, Sonde.status.keys
      ran = 0
      profile = Sonde.profile { ran += 1 }
      p ran, profile.totals, profile.top, profile.comments == [Sonde.unsupported_reason], profile.to_pprof.bytesize > 50
      begin
        Sonde::Profile.from_pprof("x")
      rescue Sonde::Error => e
        p e.message == Sonde.unsupported_reason
      end
      p Sonde.unsupported_reason
    RUBY
    Dir.mktmpdir do |dir|
      FileUtils.cp_r(File.join(ROOT, "lib"), dir)
      FileUtils.rm_f(Dir["#{dir}/lib/sonde/*.so"])
      out, err, status = Open3.capture3(clean_environment, RbConfig.ruby, "-w", "-I#{dir}/lib", "-e", code)
      assert status.success?, err
      lines = out.lines.map(&:chomp)
      assert_equal ["false", "false", "false", "false", "nil", "nil", "[:supported, :started, :reason]"], lines[0, 7]
      assert_equal ["1", "{}", "[]", "true", "true", "true"], lines[7, 6]
      assert_match(/the extension was not built for Ruby #{Regexp.escape(RUBY_VERSION)}/, lines.last)
      assert_equal 1, err.lines.size, err
    end
  end

  # How long it takes: rake bench.
  def test_loading_is_silent_and_brings_no_library
    code = "require 'sonde'; print $LOADED_FEATURES.grep_v(/sonde/).size"
    empty, = Open3.capture2e(clean_environment, RbConfig.ruby, "-w", "-e", "print $LOADED_FEATURES.size")
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", code)
    assert status.success?, out
    assert_equal empty, out
  end

  # Nobody will ever end their blocks; the collector does, when it takes the fibers.
  def test_fibers_that_are_dropped_inside_a_block_leave_no_profile_running
    made = 40
    Thread.new { made.times { Fiber.new { Sonde.profile { Fiber.yield } }.resume } }.join
    20.times do
      GC.start
      break if Sonde.status[:windows] <= made / 4
    end
    assert_operator Sonde.status[:windows], :<=, made / 4 # the collector takes stale words for references
  end

  private

  def returning
    Sonde.profile { return 4 }
  end
end
