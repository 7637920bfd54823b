# frozen_string_literal: true

require "test_helper"
require "support/fake_native"
require "open3"
require "rbconfig"

# The Ruby API in a process that forks, and the methods of Ruby that it changes for that.
class ForkApiTest < Minitest::Test
  include TestHelper

  def teardown
    Sonde.stop
  end

  def test_a_child_goes_on_profiling_itself_and_does_not_repeat_its_parent
    need_extension
    Sonde.start
    burn_in_parent
    running, names, cpu = in_child do
      burn_in_child
      running = Sonde.running?
      profile = Sonde.stop
      [running, names_of(profile), profile.totals.fetch("cpu-time")]
    end
    assert running
    assert_includes names, "ForkApiTest#burn_in_child"
    refute_includes names, "ForkApiTest#burn_in_parent"
    assert_in_delta 0.1, cpu / 1e9, 0.06

    assert Sonde.running?
    names = names_of(Sonde.stop)
    assert_includes names, "ForkApiTest#burn_in_parent"
    refute_includes names, "ForkApiTest#burn_in_child"
  end

  # On a busy machine it takes long until a child profiles itself: here, because something else is told of it first.
  def test_a_child_counts_from_the_fork_however_long_that_is_ago
    need_extension
    out, err, = ruby(<<~'RUBY', "-rsonde")
      def used
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      end
      Sonde.start
      Sonde::Fork.instance_variable_get(:@listeners)[:child].unshift(-> { sleep 0.1; nil while used < 0.2 })
      pid = fork do
        at_stop = used
        puts at_stop, Sonde.stop.totals.fetch("cpu-time") / 1e9
        before = used
        nil while used < before + 0.02
        sleep 0.1
        puts used - before, Sonde.profile { sleep 0.01 }.totals.fetch("cpu-time") / 1e9
        $stdout.flush
        exit!(0)
      end
      Process.wait(pid)
    RUBY
    assert_empty err
    at_stop, profiled, apart, later = out.lines.map(&:to_f)
    assert_operator at_stop, :>=, 0.2
    assert_operator profiled, :>=, at_stop - 0.005
    assert_operator later, :<, apart # what was before the second profile is not in it
  end

  def test_a_child_of_a_child_too
    need_extension
    Sonde.start
    names = in_child { in_child { burn_in_child; names_of(Sonde.stop) } }
    assert_includes names, "ForkApiTest#burn_in_child"
  end

  def test_a_profile_block_that_a_child_leaves_has_what_the_child_did
    need_extension
    reader, writer = IO.pipe
    child = nil
    profile = Sonde.profile do
      burn_in_parent
      child = fork
      burn_in_child unless child
    end
    unless child
      writer.write(Marshal.dump([names_of(profile), Sonde::Native.running?]))
      exit!(0)
    end
    writer.close
    names, running = Marshal.load(reader.read)
    Process.wait(child)
    assert_includes names, "ForkApiTest#burn_in_child"
    refute_includes names, "ForkApiTest#burn_in_parent"
    refute running
    assert_includes names_of(profile), "ForkApiTest#burn_in_parent"
  end

  def test_blocks_of_threads_that_the_child_does_not_have_end_with_the_fork
    need_extension
    begun = Queue.new
    thread = Thread.new { Sonde.profile { begun << true; sleep } }
    begun.pop
    refute(in_child { Sonde::Native.running? })
    assert Sonde::Native.running?
    thread.kill.join
  end

  def test_what_was_stopped_stays_stopped_in_the_child
    need_extension
    Sonde.start
    Sonde.stop
    assert_equal [false, nil], (in_child { [Sonde.running?, Sonde.stop] })
    assert_equal([true, true], in_child { [Sonde.start, Sonde.running?] })
  end

  # bug log B14, B08
  def test_nothing_grows_with_each_fork_and_no_child_is_ours
    need_extension
    Sonde.start
    3.times { Process.wait(fork { exit!(0) }) }
    before = ObjectSpace.each_object(Sonde::Session).count
    pids = Array.new(20) { |i| fork { exit!(i) } }
    seen = Process.waitall
    assert_equal pids.sort, seen.map(&:first).sort
    assert_equal (0...20).to_a, (seen.map { |_, status| status.exitstatus }.sort)
    assert_operator ObjectSpace.each_object(Sonde::Session).count, :<=, before
    sessions = in_child { in_child { in_child { GC.start; ObjectSpace.each_object(Sonde::Session).count } } }
    assert_operator sessions, :<=, before
  end

  def test_forks_of_several_threads_at_once
    need_extension
    Sonde.start
    totals = Array.new(4) { Thread.new { in_child { burn_in_child; Sonde.stop.totals["cpu-time"] } } }.map(&:value)
    totals.each { |total| assert_in_delta 0.1, total / 1e9, 0.06 }
  end

  # Sessions without the engine ----------------------------------------------------------------------------------------

  def test_a_session_opens_a_window_of_its_own_after_a_fork
    engine = FakeEngine.new
    session = Sonde::Session.new(engine)
    session.start(Sonde::Configuration.new)
    engine.windows.first.close # by the engine
    session.after_fork
    assert session.running?
    assert_equal 2, engine.windows.size
    refute_nil session.stop
    session.after_fork
    assert_equal 2, engine.windows.size
  end

  def test_a_session_whose_window_cannot_be_opened_after_a_fork_ends_quietly
    engine = FakeEngine.new
    session = Sonde::Session.new(engine)
    session.start(Sonde::Configuration.new)
    engine.windows.first.close
    engine.failure = Sonde::Error.new("not today")
    session.after_fork
    refute session.running?
    assert_nil session.stop
  end

  # Methods of Ruby ----------------------------------------------------------------------------------------------------

  CHANGED = "[Process.singleton_class.ancestors.first, Kernel.instance_method(:exec).source_location, " \
            "Process.method(:exit!).source_location, Process.method(:daemon).source_location]"

  def test_nothing_is_changed_by_mere_require
    out, = ruby("before = #{CHANGED}; require 'sonde'; print before == #{CHANGED}")
    assert_equal "true", out
  end

  def test_the_changed_methods_keep_their_visibility_and_warn_of_nothing
    out, err, = ruby(<<~'RUBY')
      require "sonde"
      visible = lambda do
        [Kernel, Process.singleton_class, Kernel.singleton_class].map do |owner|
          names = %i[fork exec exit! daemon]
          names.map { |name| [owner.public_method_defined?(name), owner.private_method_defined?(name)] }
        end
      end
      before = visible.call
      3.times { Sonde::Fork.install }
      print before == visible.call
    RUBY
    assert_equal ["true", ""], [out, err]
  end

  def test_an_exec_that_fails_raises_as_it_would
    codes = ["exec('/no/such')", "Process.exec('/no/such')", "Kernel.exec", "exec(1)", "exit!(1, 2)",
             "Process.daemon(1, 2, 3)", "Thread.report_on_exception = false",
             "def a; b; end; def b; exec('/no/such'); end; Thread.new { a }.join"]
    code = codes.map { |c| "begin; #{c}; rescue StandardError => e; puts e.class, e.message, e.backtrace; end" }
                .join("\n")
    plain, = ruby(code)
    changed, err, = ruby("Sonde::Fork.install\n#{code}".sub("\n", ";"), "-rsonde")
    assert_equal [plain, ""], [changed, err]
  end

  def test_a_listener_that_raises_neither_stops_others_nor_reaches_the_program
    out, err, = ruby(<<~'RUBY', "-rsonde")
      told = []
      Sonde::Fork.install
      Sonde::Fork.on(:leave) { raise "planned" }
      %i[leave stay child].each { |event| Sonde::Fork.on(event) { told << event } }
      begin
        exec("/no/such")
      rescue Errno::ENOENT
        told << :rescued
      end
      fork { print told.inspect; $stdout.flush; exit!(0) }
      Process.wait
    RUBY
    assert_equal ["[:leave, :stay, :rescued, :child]", ""], [out, err]
  end

  def test_a_replaced_exec_is_not_taken_for_the_end
    out, = ruby(<<~'RUBY', "-rsonde")
      Sonde::Fork.install
      def Process.sonde_exec(*) # where ours has been replaced, ours is not called at all
        :replaced
      end
      told = []
      %i[leave stay].each { |event| Sonde::Fork.on(event) { told << event } }
      print Process.exec("x").inspect, told.inspect
    RUBY
    assert_equal ":replaced[:leave, :stay]", out
  end

  private

  def ruby(code, *options)
    Open3.capture3(clean_environment, RbConfig.ruby, "-w", "-I#{ROOT}/lib", *options, "-e", code)
  end

  # What the block answers in a forked child.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      answer = begin
        yield
      rescue StandardError => e
        e.full_message
      end
      writer.write(Marshal.dump(answer))
      writer.close
      exit!(0)
    end
    writer.close
    Marshal.load(reader.read)
  ensure
    reader.close
    Process.wait(pid)
  end

  def names_of(profile)
    profile.top(limit: 200, cumulative: true).map(&:name)
  end

  def burn_in_parent
    burn
  end

  def burn_in_child
    burn
  end

  def burn
    limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.1
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
  end
end
