# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"
require "timeout"
require "zlib"

# What the recorder promises: windows that do not disturb each other, nothing lost and nothing twice, whatever happens
# in the middle of a flush; and what stacks and threads look like in a profile.
class EngineWindowsTest < Minitest::Test
  include TestHelper

  FLIPS = Integer(ENV["SONDE_TEST_FLIPS"] || 10_000)
  INTERRUPTIONS = Integer(ENV["SONDE_TEST_INTERRUPTIONS"] || 2000)
  SECOND = 1_000_000_000

  def setup
    need_extension
    @threads = []
  end

  def teardown
    @done = true
    @threads.each(&:kill)
    Thread.pass while @threads.any?(&:alive?)
    Sonde.stop
    refute Sonde::Native.running?, "a window was left open"
  end

  # -- helpers -------------------------------------------------------------------------------------------------------

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def process_cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  end

  def thread_cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  def thread(name, klass = Thread, &block)
    thread = klass.new(&block)
    thread.report_on_exception = false
    thread.name = name if name
    @threads << thread
    thread
  end

  # Burns CPU in short bursts until the test is over.
  def busy_thread(name, burst: 0.0005)
    thread(name) do
      until @done
        burn(burst)
        Thread.pass
      end
    end
  end

  def open_window(modes = %i[cpu wall], rate: 1000.0, max_frames: 2000, memory_limit: 0)
    Sonde::Native.open_window(modes, rate, max_frames, memory_limit)
  end

  def decode(profile)
    PprofDecoder.decode(profile.respond_to?(:to_pprof) ? profile.to_pprof : profile.encode)
  end

  def of_thread(profile, type, name)
    profile.total(type) { |sample| sample.labels["thread name"] == name }
  end

  def names_in(profile)
    profile.samples.flat_map { |sample| sample.frames.map(&:name) }.uniq
  end

  def within(expected, actual, share, also = 0)
    assert_in_delta expected, actual, expected * share + also
  end

  # A flush draws its line somewhere inside the call: what lies between two of them is at least the time between the
  # calls, and at most that with the calls.
  def assert_between(inside, outside, seen, what)
    assert_operator seen, :>, inside * 0.99 - 5_000_000, what
    assert_operator seen, :<, outside * 1.01 + 5_000_000, what
  end

  # -- windows -------------------------------------------------------------------------------------------------------

  def test_the_totals_of_five_overlapping_windows_agree
    busy_thread("busy")
    profiles = []
    Sonde.start
    others = Array.new(4) do |i|
      sleep 0.1
      thread("window #{i}") { Sonde.profile(modes: [%i[cpu wall], [:wall]][i % 2]) { sleep 0.3 + 0.05 * i } }
    end
    sleep 0.1
    profiles << Sonde.flush
    profiles.concat(others.map(&:value))
    profiles << Sonde.stop
    assert_equal 6, profiles.size
    profiles.each do |profile|
      decoded = decode(profile)
      within profile.duration * SECOND, of_thread(decoded, "wall-time", "busy"), 0.01
      within profile.duration * SECOND, of_thread(decoded, "wall-time", "main"), 0.01
    end
  end

  def test_consecutive_flushes_add_up_to_the_cpu_time_of_the_process
    Sonde.start
    Sonde.flush
    before = process_cpu
    2.times { |i| busy_thread("busy #{i}") }
    seen = Array.new(14) { sleep 0.1; Sonde.flush.totals.fetch("cpu-time") }.sum
    inside = process_cpu - before
    seen += Sonde.flush.totals.fetch("cpu-time")
    assert_between(inside, process_cpu - before, seen, "CPU")
  end

  def test_one_flush_begins_where_the_one_before_ends
    Sonde.start
    profiles = Array.new(10) { burn(0.01); Sonde.flush }
    profiles.each_cons(2) { |a, b| assert_in_delta a.finish.to_f, b.start.to_f, 0.005 }
  end

  # Each thread's wall time in all flushes is the time that passed, and the CPU is what the process used.
  def test_thousands_of_flips_under_load_lose_nothing_and_double_nothing
    window = open_window
    names = Array.new(4) { |i| "busy #{i}" }.each { |name| busy_thread(name) }
    sleep 0.05
    outer = [now, process_cpu]
    window.flush
    inner = [now, process_cpu]
    sum = Sonde::Native::Profile.read("\x32\x00".b)
    (FLIPS - 1).times { sum.merge(window.flush, nil) }
    inner = [now, process_cpu].zip(inner).map { |after, before| after - before }
    sum.merge(window.flush, nil)
    outer = [now, process_cpu].zip(outer).map { |after, before| after - before }
    decoded = decode(sum)
    (names + ["main"]).each { |name| assert_between(inner[0], outer[0], of_thread(decoded, "wall-time", name), name) }
    assert_between(inner[1], outer[1], decoded.total("cpu-time"), "CPU")
  ensure
    window.close
  end

  def test_cpu_of_each_thread_is_what_its_own_clock_says
    clocks = {}
    profile = Sonde.profile do
      threads = Array.new(4) do |i|
        thread("worker #{i}") do
          begun = thread_cpu
          burn(0.05 + 0.05 * i)
          thread_cpu - begun
        end
      end
      threads.each { |one| clocks[one.name] = one.value }
    end
    decoded = decode(profile)
    clocks.each { |name, cpu| within cpu, of_thread(decoded, "cpu-time", name), 0.02, 2_000_000 }
  end

  def test_a_window_sees_its_modes_and_no_others
    Sonde.start
    cpu = decode(Sonde.profile(modes: [:cpu]) { burn(0.05) })
    wall = decode(Sonde.profile(modes: [:wall]) { burn(0.05) })
    assert_equal %w[cpu-time cpu-samples gc-time], cpu.types
    assert_equal [], wall.types & %w[cpu-time cpu-samples]
    assert_includes wall.types, "wall-time"
    assert_operator cpu.total("cpu-time"), :>, 40_000_000
    assert_operator wall.total("wall-time"), :>, 40_000_000
    assert_equal [], %w[cpu-time wall-time] - decode(Sonde.stop).types
  end

  # -- interruptions -------------------------------------------------------------------------------------------------

  def resident_kilobytes
    GC.start
    File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
  end

  def interruptible_loop
    loop do
      begin
        Sonde.profile(rate: 1000) { Sonde.flush }
        window = open_window
        begin
          window.flush
        ensure
          window.close
        end
      rescue IOError, Timeout::Error
        next
      end
    end
  end

  def interrupt(victim, random)
    sleep(random.rand * 0.001)
    return victim.raise(IOError, "from outside") if random.rand(4).positive?

    victim.kill
    Thread.pass while victim.alive?
  end

  def test_exceptions_and_kills_at_any_point_of_a_flush_leave_nothing_behind
    random = Random.new(7)
    Sonde.start
    victim = nil
    resident = nil
    INTERRUPTIONS.times do |i|
      victim = thread(nil) { interruptible_loop } unless victim&.alive?
      interrupt(victim, random)
      Sonde.flush if (i % 100).zero?
      resident = resident_kilobytes if i == INTERRUPTIONS / 4
    end
    victim.kill
    Thread.pass while victim.alive?
    @threads.clear
    assert Sonde.running?
    assert_equal 1, abandoned_windows_gone
    assert_operator resident_kilobytes - resident, :<, 30_000
    within SECOND / 10, Sonde.profile { burn(0.1) }.totals.fetch("cpu-time"), 0.5
  end

  # Native windows that a kill left behind unclosed go with their objects.
  def abandoned_windows_gone
    50.times do
      GC.start
      break if Sonde.status.fetch(:windows) == 1

      thread(nil) { Array.new(100) { Object.new } }.join
    end
    Sonde.status.fetch(:windows)
  end

  def test_timeouts_at_any_point_of_a_flush_leave_nothing_behind
    random = Random.new(8)
    Sonde.start
    200.times do
      begin
        Timeout.timeout(0.0001 + random.rand * 0.003) { loop { Sonde.profile { Sonde.flush } } }
      rescue Timeout::Error
        next
      end
    end
    assert Sonde.running?
    assert_equal 1, Sonde.status.fetch(:windows)
  end

  class FromHandler < StandardError; end

  # A handler may run wherever Ruby code may: also while a flush looks up names.
  def test_a_signal_handler_that_raises_during_a_flush_costs_other_windows_nothing
    armed = false
    previous = trap("USR2") { raise FromHandler if armed }
    200.times { |i| eval("def handler_load_#{i}; burn(0.0003); end", nil, __FILE__, __LINE__) }
    outside = now
    other = open_window
    window = open_window
    inside = now
    signals = thread(nil) { loop { sleep 0.001; Process.kill("USR2", Process.pid) } }
    30.times do
      20.times { send("handler_load_#{rand(200)}") }
      begin
        armed = true
        window.flush
      rescue FromHandler
        next
      ensure
        armed = false
      end
    end
    signals.kill.join
    window.close
    inside = now - inside
    profile = other.close
    assert_between(inside, now - outside, of_thread(decode(profile), "wall-time", "main"), "wall")
  ensure
    armed = false
    [window, other].compact.each(&:close)
    trap("USR2", previous || "DEFAULT")
  end

  def test_windows_that_are_collected_while_others_flush_disturb_nobody
    window = open_window
    flusher = thread("flusher") { window.flush && sleep(0.001) until @done }
    30.times do
      thread(nil) { open_window && nil }.join
      GC.start
    end
    @done = true
    flusher.join
    window.close
    assert_equal 0, abandoned_windows(0)
  end

  def abandoned_windows(wanted)
    100.times do
      break if Sonde.status.fetch(:windows) == wanted

      thread(nil) { GC.start; Array.new(1000) { Object.new } }.join
    end
    Sonde.status.fetch(:windows)
  end

  # -- bounds --------------------------------------------------------------------------------------------------------

  def dive(depth)
    depth.zero? ? burn(0.1) : dive(depth - 1)
  end

  def test_a_stack_deeper_than_max_frames_keeps_both_ends_and_says_how_much_is_missing
    profile = decode(Sonde.profile(max_frames: 20) { dive(300) })
    deep = profile.samples.select { |sample| sample.frames.any? { |frame| frame.name =~ /dive\z/ } }
    refute_empty deep
    deep.each do |sample|
      assert_equal 20, sample.frames.size
      gaps = sample.frames.map { |frame| frame.name[/\A\((\d+) frames omitted\)\z/, 1] }.compact
      assert_equal 1, gaps.size
      assert_operator gaps.first.to_i, :>, 280
    end
    assert(deep.any? { |sample| sample.frames.first(3).any? { |frame| frame.name =~ /burn\z|clock_gettime\z/ } })
    roots = decode(Sonde.profile { burn(0.05) }).samples.map { |sample| sample.root.name }
    deep.each { |sample| assert_includes roots, sample.root.name }
  end

  def test_past_the_memory_limit_samples_go_to_a_visible_stack_and_totals_stay_exact
    window = open_window(memory_limit: 1)
    window.flush
    before = [now, process_cpu]
    400.times { |i| eval("def overflow_#{i}; burn(0.001); end; overflow_#{i}", nil, "/nowhere/overflow.rb", i + 1) }
    elapsed, cpu = [now, process_cpu].zip(before).map { |after, begun| after - begun }
    profile = decode(window.close)
    assert(names_in(profile).include?("(overflow)"), "no (overflow)")
    within cpu, profile.total("cpu-time"), 0.02, 10_000_000
    main_and_lost = profile.total("wall-time") do |sample|
      sample.labels["thread name"] == "main" || sample.leaf.name == "(overflow)"
    end
    assert_operator main_and_lost, :>, elapsed * 0.98
  ensure
    window.close
  end

  def test_of_several_windows_the_largest_memory_limit_holds
    small = open_window(memory_limit: 1)
    large = open_window
    4.times { |i| eval("def roomy_#{i}; burn(0.02); end; roomy_#{i}", nil, "/nowhere/roomy.rb", i + 1) }
    names = names_in(decode(large.close))
    refute_includes names, "(overflow)"
    assert(names.any? { |name| name.include?("roomy_") })
  ensure
    [small, large].each { |window| window&.close }
  end

  # -- threads -------------------------------------------------------------------------------------------------------

  def test_a_living_thread_without_a_readable_stack_keeps_its_time
    found = (1..100).any? do
      born = thread(nil) { sleep }
      profile = decode(Sonde.profile { nil })
      born.kill
      names_in(profile).include?("(native code)")
    end
    assert found, "a thread that had not begun was never shown as (native code)"
  end

  def test_dead_threads_keep_their_names
    profile = decode(Sonde.profile { 20.times { |i| thread("short #{i}") { burn(0.01) }.join } })
    20.times { |i| within 10_000_000, of_thread(profile, "cpu-time", "short #{i}"), 0.3, 2_000_000 }
  end

  def test_a_thread_has_the_name_that_it_has_at_the_flush
    Sonde.start
    renamed = thread("before") { Thread.stop; burn(0.05) }
    Thread.pass until renamed.stop?
    renamed.name = "after ünïcode"
    renamed.run
    renamed.join
    profile = decode(Sonde.stop)
    assert_equal 0, of_thread(profile, "wall-time", "before")
    assert_operator of_thread(profile, "cpu-time", "after ünïcode"), :>, 40_000_000
  end

  def test_states_of_threads
    text = "abc" * 4_000_000
    profile = Sonde.profile do
      thread("sleeper") { sleep 0.4 }
      threads = [thread("burner") { burn(0.2) }, thread("burner") { burn(0.2) }]
      threads << thread("zipper") { 2.times { Zlib.deflate(text, 9) } }
      threads.each(&:join)
    end
    states = Hash.new { |hash, name| hash[name] = Hash.new(0) }
    decode(profile).samples.each do |sample|
      states[sample.labels["thread name"]][sample.labels["state"]] += sample.values["wall-time"]
    end
    assert_operator states["burner"]["running"], :>, 0
    assert_operator states["zipper"]["native"], :>, 0
    assert_operator states["sleeper"]["running"] + states["sleeper"]["native"], :<, 50_000_000
    return unless Sonde::Native.features["GVL wait time"].nil?

    assert_operator states["sleeper"]["blocked"], :>, 300_000_000
    assert_operator states["burner"]["gvl-wait"], :>, 20_000_000
  end

  class HostileThread < Thread
    overridden = %i[name inspect to_s alive? native_thread_id status hash == eql? equal? respond_to? is_a? class]
    overridden.each do |method|
      define_method(method) { |*| ::Kernel.raise "the profiler called #{method}" }
    end
  end

  def test_threads_that_override_everything_are_profiled
    before = HostileThread.new { Thread.stop; burn(0.03) }
    sleep 0.01
    Sonde.start
    after = HostileThread.new { burn(0.03) }
    sleep 0.05
    first = Sonde.flush
    before.run
    [before, after].each(&:join)
    profile = decode(Sonde.stop)
    [decode(first), profile].each do |one|
      assert(one.samples.any? { |sample| sample.labels["thread name"].to_s.include?(File.basename(__FILE__)) })
    end
  end

  def test_redefined_methods_of_thread_and_gc_are_not_called
    code = <<~'RUBY'
      require "sonde"
      def Thread.list
        raise "called"
      end
      def GC.total_time
        raise "called"
      end
      Sonde.start or abort "no start"
      100_000.times { "x" * 10 }
      Sonde.flush.to_pprof
      print Sonde.stop.class
    RUBY
    out = IO.popen([clean_environment, RbConfig.ruby, "-W0", "-I#{ROOT}/lib", "-e", code], err: %i[child out], &:read)
    assert_equal "Sonde::Profile", out
  end

  # -- names ---------------------------------------------------------------------------------------------------------

  class Bare < BasicObject
    def burn_bare(test)
      test.burn(0.03)
    end
  end

  def test_names_have_no_addresses
    test = self
    anonymous = Class.new { define_method(:burn_anonymous) { test.burn(0.03) } }
    plain = Class.new { class_eval("def burn_plain(test); test.burn(0.03); end", "/nowhere/plain.rb", 1) }
    object = Object.new
    object.instance_eval("def burn_single(test); test.burn(0.03); end", "/nowhere/single.rb", 1)
    profile = decode(Sonde.profile do
      Bare.new.burn_bare(self)
      anonymous.new.burn_anonymous
      plain.new.burn_plain(self)
      object.burn_single(self)
    end)
    names = names_in(profile)
    assert_empty names.grep(/0x\h{4}/)
    assert_includes names, "EngineWindowsTest::Bare#burn_bare"
    assert_includes names, "#<Class>#burn_plain"
    assert(names.any? { |name| name =~ /burn_single\z/ }, names.grep(/burn/).inspect)
  end

  def test_methods_of_compiled_templates_have_one_name
    methods = %w[___1234567890123456789_12340 __987654321_4560].map { |rest| "_app_views_posts_show_html_erb#{rest}" }
    methods.each { |name| eval("def #{name}; burn(0.05); end", nil, "/app/views/posts/show.html.erb", 1) }
    names = names_in(decode(Sonde.profile { methods.each { |name| send(name) } }))
    assert_equal ["EngineWindowsTest#_app_views_posts_show_html_erb"], names.grep(/show_html_erb/)
  end

  def test_code_at_negative_lines_makes_a_profile_that_others_read
    eval("def early_lines; burn(0.05); end", nil, "/nowhere/early.erb", -10)
    assert_includes names_in(decode(Sonde.profile { early_lines })), "EngineWindowsTest#early_lines"
  end

  # bug log B17
  def test_methods_that_are_gone_at_the_flush_are_named
    Sonde.start
    60.times do |i|
      eval("def gone_#{i}; burn(0.004); end", nil, "/nowhere/gone_#{i}.rb", i + 1)
      send("gone_#{i}")
      self.class.send(:remove_method, "gone_#{i}")
      inner = Class.new { class_eval("def inner_#{i}(test); test.burn(0.002); end", "/nowhere/inner_#{i}.rb", 7) }
      inner.new.send("inner_#{i}", self)
      GC.start(full_mark: true, immediate_sweep: true) if (i % 20).zero?
    end
    5.times { GC.start }
    frames = decode(Sonde.stop).samples.flat_map(&:frames)
    gone = frames.select { |frame| frame.name =~ /gone_\d+\z/ }
    assert_operator gone.map(&:name).uniq.size, :>, 5
    gone.each { |frame| assert_equal "/nowhere/gone_#{frame.name[/\d+\z/]}.rb", frame.file }
    assert_operator frames.map(&:name).grep(/\A#<Class>#inner_\d+\z/).uniq.size, :>, 3
  end

  # bug log B26
  class Plain
    def later_refined(test)
      test.burn(0.1)
    end

    def mixed(test)
      test.burn(0.1)
    end
  end

  def test_methods_that_are_refined_undefined_or_redefined_while_profiled_are_named
    Sonde.start
    Plain.new.later_refined(self)
    Module.new { refine(Plain) { def later_refined(_test); end } }
    fine = Module.new { refine(Plain) { def only_refined(test); mixed(test); end } }
    self.class.const_set(:Fine, fine)
    eval("using EngineWindowsTest::Fine; ->(test) { EngineWindowsTest::Plain.new.only_refined(test) }",
         TOPLEVEL_BINDING.dup, "/nowhere/using.rb", 1).call(self)
    Plain.class_eval { undef_method(:mixed) }
    Plain.class_eval { remove_method(:later_refined) }
    Plain.class_eval { define_method(:later_refined) { |test| test.burn(0.02) } }
    Plain.new.later_refined(self)
    GC.start
    names = names_in(decode(Sonde.stop))
    # On a Ruby newer than known nothing private is read, and that needs it.
    newer = (RUBY_VERSION.split(".").map(&:to_i) <=> [4, 1]) >= 0
    assert_includes names, "EngineWindowsTest::Plain##{newer ? "(refined)" : "later_refined"}"
    %w[only_refined mixed].each { |name| assert(names.any? { |one| one.include?(name) }, name) }
    assert_empty names.select { |name| name.empty? || name == "(unnamed)" }
  end

  def fiber_burn(seconds)
    burn(seconds)
  end

  # bug log B31
  def test_cpu_of_fibers_is_counted_once_and_nothing_is_left_in_them
    polluted = []
    used = nil
    profile = Sonde.profile do
      begun = process_cpu
      fibers = Array.new(200) { Fiber.new { Fiber.yield; polluted.concat(Thread.current.keys); fiber_burn(0.0005) } }
      fibers.each(&:resume)
      fiber_burn(0.2)
      fibers.each(&:resume)
      list = Enumerator.new { |yielder| 100.times { |i| fiber_burn(0.0005); yielder << i } }
      100.times { list.next }
      used = process_cpu - begun
      polluted.concat(Thread.current.thread_variables)
    end
    within used, decode(profile).total("cpu-time"), 0.05, 10_000_000
    assert_empty polluted
  end

  def block_holder
    burn(0.03)
    [1].each { burn(0.06) }
  end

  def test_blocks_are_told_from_their_methods_where_the_vm_is_read
    reason = Sonde::Native.features["stacks of other threads"]
    layout = Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.3") && reason.nil?
    skip "only where stacks are read without the VM's own function (before 3.3)" unless layout

    names = names_in(decode(Sonde.profile { block_holder }))
    assert_includes names, "EngineWindowsTest#block_holder"
    assert_includes names, "block in EngineWindowsTest#block_holder"
  end
end
