# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "rbconfig"

# Processes that are made from a profiled one, and the signal that Sonde uses before Ruby 3.3. Each test runs a program
# of its own, so that what goes wrong in it is one failure and no more.
class ForkTest < Minitest::Test
  include TestHelper

  LIMIT = 180 # seconds: only what hangs takes so long, also on a busy machine

  PRELUDE = <<~'RUBY'
    require "sonde"
    def burn(seconds)
      finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      1 while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
    end
    def status_of(pid)
      Process.wait2(pid).last.exitstatus
    end
  RUBY

  def setup
    need_extension
    skip "this Ruby cannot fork" unless Process.respond_to?(:fork)
  end

  # What the program prints; it must end by itself, cleanly, and say nothing on stderr.
  def run_program(code, stderr: "")
    command = [clean_environment, RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", PRELUDE + code]
    Open3.popen3(*command, pgroup: true) do |input, out, err, waiter|
      input.close
      reader = Thread.new { out.read }
      errors = Thread.new { err.read }
      unless waiter.join(LIMIT)
        Process.kill(:KILL, -waiter.pid)
        flunk "hung: #{reader.value}#{errors.value}"
      end
      assert_equal 0, waiter.value.exitstatus, "#{waiter.value}: #{reader.value}#{errors.value}"
      stderr.is_a?(Regexp) ? assert_match(stderr, errors.value) : assert_equal(stderr, errors.value)
      reader.value
    end
  end

  def test_a_child_has_a_profile_of_itself_only_and_its_parent_goes_on
    out = run_program(<<~'RUBY')
      Sonde.start
      burn(0.1)
      child = fork do
        burn(0.05)
        profile = Sonde.stop
        exit!(profile.nil? || profile.totals.fetch("cpu-time").between?(30_000_000, 140_000_000) ? 7 : 1)
      end
      puts status_of(child), Sonde.running?
      burn(0.1)
      puts Sonde.stop.totals.fetch("cpu-time") > 180_000_000
    RUBY
    assert_equal %w[7 true true], out.split
  end

  def test_a_child_can_start_a_profile_of_its_own_without_the_threads_of_its_parent
    out = run_program(<<~'RUBY')
      Thread.new { sleep }.name = "of the parent"
      Sonde.start
      burn(0.1)
      child = fork do
        Sonde.stop
        profile = Sonde.profile { burn(0.2) }
        Sonde.start
        burn(0.05)
        second = Sonde.stop
        text = profile.to_pprof
        require "zlib"
        totals = profile.totals
        print [Zlib.gunzip(text).include?("of the parent"), totals.fetch("cpu-time").between?(150_000_000, 300_000_000),
               totals.fetch("wall-time") < profile.duration * 1.1e9,
               second.totals.fetch("cpu-time") > 40_000_000, ""].join(" ")
        $stdout.flush
        exit!(3)
      end
      puts status_of(child), Sonde.stop.totals.fetch("cpu-time") > 90_000_000
    RUBY
    assert_equal %w[false true true true 3 true], out.split
  end

  def test_forks_inside_a_profile_block_and_in_threads
    out = run_program(<<~'RUBY')
      statuses = []
      profile = Sonde.profile do
        child = fork { burn(0.02); exit 4 }
        burn(0.05)
        statuses << status_of(child)
        threads = Array.new(3) { |i| Thread.new { status_of(fork { Thread.new { burn(0.01) }.join; exit(10 + i) }) } }
        statuses.concat(threads.map(&:value))
      end
      puts statuses.inspect, profile.totals.fetch("cpu-time") > 40_000_000
    RUBY
    assert_equal ["[4, 10, 11, 12]", "true"], out.split("\n")
  end

  # The block goes on in the child, where its window is closed: it has no profile to answer.
  def test_a_child_may_leave_the_block_that_it_was_forked_in
    out = run_program(<<~'RUBY')
      child = nil
      profile = Sonde.profile { child = fork }
      if child.nil?
        exit!(profile.is_a?(Sonde::Profile) ? 5 : 6)
      end
      puts status_of(child), profile.class
    RUBY
    assert_includes [%w[5 Sonde::Profile], %w[6 Sonde::Profile]], out.split
  end

  def test_fifty_children_in_a_row_end_with_their_own_status
    out = run_program(<<~'RUBY')
      Sonde.start(rate: 1000)
      threads = 2.times.map { Thread.new { loop { burn(0.002); sleep 0.001 } } }
      wrong = (1..50).reject { |i| status_of(fork { burn(0.002); exit i }) == i }
      puts wrong.inspect, Sonde.stop.sample_count > 0
    RUBY
    assert_equal %w[[] true], out.split
  end

  def test_children_of_a_process_that_is_flushing_end_with_their_own_status
    out = run_program(<<~'RUBY')
      Sonde.start(rate: 1000)
      300.times { |i| eval("def busy_#{i}; burn(0.0001); end") }
      flusher = Thread.new { loop { Sonde.flush; sleep 0.0005 } }
      worker = Thread.new { loop { 20.times { send("busy_#{rand(300)}") }; sleep 0.0005 } }
      wrong = (1..30).reject do |i|
        child = fork do
          GC.start
          exit(Sonde.profile { burn(0.01) }.sample_count > 0 ? i : 99)
        end
        status_of(child) == i
      end
      [flusher, worker].each { |thread| thread.kill.join }
      puts wrong.inspect
    RUBY
    assert_equal "[]", out.strip
  end

  def test_children_of_children
    out = run_program(<<~'RUBY')
      Sonde.start
      child = fork do
        Sonde.stop
        Sonde.start
        grandchild = fork do
          Sonde.stop
          Sonde.start
          burn(0.02)
          exit(Sonde.stop.totals.fetch("cpu-time") > 15_000_000 ? 8 : 9)
        end
        exit(status_of(grandchild) + (Sonde.running? ? 10 : 0))
      end
      puts status_of(child), Sonde.running?
    RUBY
    assert_equal %w[18 true], out.split
  end

  def test_a_daemon_is_a_child_too
    out = run_program(<<~'RUBY')
      reader, writer = IO.pipe
      Sonde.start
      if fork
        writer.close
        print reader.read
      else
        Process.daemon(true, true)
        Sonde.stop
        Sonde.start
        burn(0.05)
        writer.print Sonde.running?, " ", Sonde.stop.totals.fetch("cpu-time") > 40_000_000
        writer.close
      end
    RUBY
    assert_equal "true true", out
  end

  def test_programs_started_from_a_profiled_one_run_as_always
    out = run_program(<<~'RUBY')
      Sonde.start(rate: 1000)
      threads = 2.times.map { Thread.new { loop { burn(0.001); sleep 0.001 } } }
      puts 20.times.map { |i| system("exit #{i}"); $?.exitstatus } == (0..19).to_a
      puts 20.times.map { `echo word` }.uniq.inspect
      puts (1..20).map { |i| status_of(Process.spawn("exit #{i}")) } == (1..20).to_a
      puts (1..10).map { |i| status_of(fork { exec("sh", "-c", "exit #{i}") }) } == (1..10).to_a
      $stdout.flush
      exec("echo", "the end")
    RUBY
    assert_equal ["true", '["word\n"]', "true", "true", "the end"], out.split("\n")
  end

  # -- SIGURG, which Sonde sends before Ruby 3.3 ---------------------------------------------------------------------

  def signals?
    Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.3") && Sonde::Native.features["stacks of other threads"].nil?
  end

  def test_a_program_that_handles_urg_is_told_so_once
    skip "this Ruby needs no signal" unless signals?

    out = run_program(<<~'RUBY', stderr: /\A[^\n]*Sonde cannot profile now: .*handles SIGURG itself[^\n]*\n\z/)
      calls = 0
      trap("URG") { calls += 1 }
      p Sonde.start, Sonde.start, Sonde.running?, Sonde.profile { burn(0.01) }.totals
      Process.kill("URG", Process.pid)
      sleep 0.05
      p calls
    RUBY
    assert_equal %w[false false false {} 1], out.split
  end

  def test_a_program_that_traps_urg_later_gets_its_own_signals_only
    out = run_program(<<~'RUBY', stderr: /\A(.*handles SIGURG itself.*\n)?\z/)
      Sonde.start
      burn(0.05)
      calls = 0
      trap("URG") { calls += 1 }
      burn(0.3)
      Process.kill("URG", Process.pid)
      sleep 0.05
      puts calls
      profile = Sonde.stop
      puts profile.totals.fetch("cpu-time").between?(250_000_000, 600_000_000)
      puts Sonde.start == false || Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("3.3")
    RUBY
    assert_equal %w[1 true true], out.split
  end

  def test_a_signal_that_nobody_handles_is_still_ignored_after_a_profile
    out = run_program(<<~'RUBY')
      Sonde.profile { burn(0.02) }
      Process.kill("URG", Process.pid)
      sleep 0.02
      puts status_of(fork { Process.kill("URG", Process.pid); exec("true") })
    RUBY
    assert_equal "0", out.strip
  end
end
