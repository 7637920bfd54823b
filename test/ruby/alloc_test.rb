# frozen_string_literal: true

require "test_helper"
require "objspace"
require "open3"
require_relative "../support/pprof_decoder"

# Allocation profiles. How exact they are is test/accuracy/alloc.rb's business; here a site that makes nearly all
# objects must have most of them.
class AllocTest < Minitest::Test
  include TestHelper

  Point = Struct.new(:x, :y)

  class Plain < BasicObject; end

  def setup
    need_extension
    skip Sonde::Native.features["allocations (mode alloc)"] if Sonde::Native.features["allocations (mode alloc)"]
  end

  def teardown
    Sonde.stop
  end

  # Long enough for some dozens of windows, also where others have the CPU most of the time.
  def allocate(seconds = 0.6)
    finish, limit = now + seconds, now + 15
    burned = cpu + seconds / 2
    500.times { yield } while now < finish || (now < limit && cpu < burned)
  end

  def cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def profile(**options, &block)
    PprofDecoder.decode(Sonde.profile(modes: %i[alloc], **options, &block).to_pprof)
  end

  def share(decoded, type = "alloc-samples", &condition)
    decoded.total(type, &condition).fdiv(decoded.total(type))
  end

  def of_class(name)
    ->(sample) { sample.labels["allocation class"] == name }
  end

  def test_the_total_is_the_vms_own_count
    counted = nil
    decoded = profile do
      before = GC.stat(:total_allocated_objects)
      allocate(0.3) { Object.new }
      counted = GC.stat(:total_allocated_objects) - before
    end
    # What Sonde itself makes at the beginning and the end is in it.
    assert_in_delta counted, decoded.total("alloc-samples"), 2000
    assert_equal [%w[alloc-samples count], %w[alloc-samples-unscaled count], %w[alloc-size bytes],
                  %w[gc-debt-time nanoseconds]],
                 decoded.sample_types.map(&:to_a)
  end

  def test_objects_have_their_class_their_stack_and_their_thread
    decoded = profile do
      thread = Thread.new { allocate { Point.new(1, 2) } }
      thread.name = "maker"
      thread.join
    end
    mine = lambda do |sample|
      sample.labels["thread name"] == "maker" && sample.labels["allocation class"] == "AllocTest::Point" &&
        sample.frames.any? { |frame| frame.name.include?("AllocTest#test_objects_have_their_class") }
    end
    assert_operator share(decoded, &mine), :>, 0.9
    assert_operator decoded.total("alloc-samples-unscaled", &mine), :>, 10
  end

  def test_the_size_is_the_vms_own
    text = "x" * 5000
    decoded = profile { allocate { text + text } }
    picked = decoded.samples.select(&of_class("String")).max_by { |sample| sample.values["alloc-samples"] }
    expected = ObjectSpace.memsize_of(text + text)
    assert_in_delta expected, picked.values["alloc-size"].fdiv(picked.values["alloc-samples"]), 0.1 * expected
  end

  def test_anonymous_classes_have_no_address_and_hidden_objects_a_kind
    anonymous = Class.new { def initialize; end }
    decoded = profile { allocate { anonymous.new } }
    assert_operator share(decoded, &of_class("#<Class>")), :>, 0.9
    # A block that is kept makes an environment, which no program ever sees.
    decoded = profile { allocate { |&block| proc { block } } }
    assert_operator share(decoded, &of_class("(VM internal, imemo)")), :>, 0.2
    refute(decoded.samples.any? { |sample| sample.labels["allocation class"].to_s.include?("0x") })
  end

  def test_basic_objects_singletons_and_frozen_ones
    decoded = profile { allocate { Plain.new } }
    assert_operator share(decoded, &of_class("AllocTest::Plain")), :>, 0.9
    decoded = profile { allocate(0.4) { Object.new.freeze.singleton_class } }
    assert_operator share(decoded, &of_class("Class")), :>, 0.1
  end

  def test_beside_cpu_and_wall
    profile = Sonde.profile(modes: %i[cpu wall alloc]) { allocate(0.4) { Object.new } }
    decoded = PprofDecoder.decode(profile.to_pprof)
    assert_operator decoded.total("cpu-time"), :>, 50_000_000
    assert_operator share(decoded, &of_class("Object")), :>, 0.5
    assert(decoded.samples.none? do |sample|
      sample.labels["allocation class"] && sample.values["cpu-time"].positive?
    end)
  end

  def test_a_window_without_them_has_none_and_pays_nothing
    outer = nil
    inner = Sonde.profile(modes: %i[alloc]) do
      outer = Sonde.profile(modes: :cpu) { allocate(0.3) { Object.new } }
    end
    assert_includes inner.totals, "alloc-samples"
    refute_includes outer.totals, "alloc-samples"
    assert_nil PprofDecoder.decode(outer.to_pprof).samples.find { |sample| sample.labels["allocation class"] }
    Sonde.start(modes: :cpu)
    assert_nil Sonde.status[:allocations]
  end

  def test_it_says_how_exact_it_is
    profile = Sonde.profile(modes: %i[alloc]) { allocate { Object.new } }
    comment = profile.comments.find { |text| text.start_with?("alloc: ") }
    assert_match(/\Aalloc: \d+ windows .* worth [\d.]+ equal ones .* \d+ objects counted, \d+ estimated/, comment)
    half = profile.standard_error(0.5)
    assert_operator half, :<, 0.5
    assert_in_delta half * 0.6, profile.standard_error(0.1), 1e-9
    assert_operator profile.standard_error(0.5, by: "alloc-size"), :>, 0
    loaded = Sonde::Profile.from_pprof(profile.to_pprof)
    assert_in_delta half, loaded.standard_error(0.5), 1e-9
    assert_in_delta half / Math.sqrt(2), loaded.merge(Sonde.profile(modes: %i[alloc]) { allocate { Object.new } })
                                               .standard_error(0.5), half * 0.35
    assert_nil Sonde.profile(modes: :cpu) { nil }.standard_error(0.5)
    assert_raises(ArgumentError) { profile.standard_error(2) }
    assert_raises(ArgumentError) { profile.standard_error(0.5, by: "cpu-time") }
  end

  def indebted(count)
    count.times { "x" * 20_000 }
  end

  def frugal(count)
    count.times { |i| i.to_s }
  end

  def test_the_debt_of_collections_goes_to_who_allocates_bytes
    total = nil
    profile = Sonde.profile(modes: %i[cpu alloc]) do
      before = GC.respond_to?(:total_time) ? GC.total_time : nil
      allocate(1.0) { indebted(2) && frugal(2) }
      total = GC.total_time - before if before
    end
    decoded = PprofDecoder.decode(profile.to_pprof)
    by = lambda do |name|
      decoded.total("gc-debt-time") { |sample| sample.frames.any? { |frame| frame.name.include?(name) } }
    end
    assert_operator by["AllocTest#indebted"], :>, by["AllocTest#frugal"]
    return unless total

    assert_operator decoded.total("gc-debt-time"), :>=, 0.95 * total # and what Sonde itself caused at the start
    assert_equal decoded.total("gc-time"), decoded.total("gc-debt-time")
  end

  def test_collections_have_a_cause_and_a_type
    skip "the collector's own flag is seen at instants only" unless GC.respond_to?(:total_time)
    profile = Sonde.profile(modes: %i[cpu wall]) do
      finish = now + 0.5
      GC.start while now < finish
    end
    rows = PprofDecoder.decode(profile.to_pprof).samples.select { |sample| sample.labels["gc cause"] }
    refute_empty rows
    assert(rows.all? { |sample| sample.frames.first.name == "(garbage collection)" })
    most = rows.max_by { |sample| sample.values["gc-time"] }
    assert_equal %w[method major], most.labels.values_at("gc cause", "gc type")
  end

  def test_status
    Sonde.start(modes: :alloc)
    deadline = now + 20
    status = nil
    loop do
      allocate(0.3) { Object.new }
      status = Sonde.status[:allocations]
      break if status[:alloc_windows] > 5 || now > deadline
    end
    assert_includes %i[time count], status[:scheme]
    assert_operator status[:alloc_windows], :>, 5
    assert_operator status[:objects_picked], :>, 5
    assert_operator status[:objects_seen], :>, status[:objects_picked]
    assert_operator status[:hook_ns], :>=, 2
    assert_nil status[:problem]
  end

  def test_flushes_follow_each_other_without_a_gap
    before = GC.stat(:total_allocated_objects)
    Sonde.start(modes: :alloc)
    parts = Array.new(5) do
      allocate(0.1) { Object.new }
      Sonde.flush
    end
    parts << Sonde.stop
    counted = GC.stat(:total_allocated_objects) - before
    assert_in_delta counted, parts.sum { |part| part.totals["alloc-samples"] }, 40_000 # the hook is measured first
  end

  def test_exceptions_and_throws_inside_windows
    decoded = profile do
      allocate(1.0) do
        begin
          raise ArgumentError, "no" if rand < 0.5
          throw :nowhere
        rescue ArgumentError
          nil
        end
      end
    end
    assert_operator share(decoded, &of_class("ArgumentError")), :>, 0.03
    assert_operator share(decoded, &of_class("UncaughtThrowError")), :>, 0.03
  end

  def test_nothing_is_kept_alive
    kept = 3.times.map do
      Sonde.profile(modes: %i[alloc]) { allocate(0.2) { Point.new(1, 2) } }
      GC.start
      ObjectSpace.each_object(Point).count
    end
    assert_operator kept.last, :<, 50
  end

  def test_a_ractor_ends_it_where_that_is_dangerous
    skip "no Ractors here" unless defined?(Ractor)
    script = <<~RUBY
      require "sonde"
      Warning[:experimental] = false
      Sonde.start(modes: %i[alloc])
      200_000.times { Object.new }
      value = Ractor.new { 300_000.times { Object.new }; 7 }
      value = value.respond_to?(:value) ? value.value : value.take
      200_000.times { Object.new }
      problem = Sonde.status[:allocations][:problem]
      profile = Sonde.stop
      puts value, problem.nil?, profile.totals["alloc-samples"], profile.comments.grep(/stopped/).size
      puts Sonde.start(modes: %i[alloc])
    RUBY
    out, error, status = Open3.capture3(clean_environment, RbConfig.ruby, "-I#{ROOT}/lib", "-e", script)
    assert status.success?, out + error
    lines = out.lines.map(&:chomp)
    if RUBY_VERSION < "3.3"
      assert_equal ["7", "false"], lines.first(2), out
      assert_operator lines[2].to_i, :<, 250_000
      assert_equal "1", lines[3]
      assert_match(/Sonde cannot profile now: .*a Ractor was made/, error)
      assert_equal "false", lines[4]
    else
      assert_equal %w[7 true], lines.first(2), out
      assert_equal "true", lines.last
    end
  end

  # The hook that a child inherits switched on must not stay on there.
  def test_a_child_forked_inside_a_window_is_as_fast_as_before
    script = <<~RUBY
      require "sonde"
      Sonde.start(modes: %i[alloc])
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1.5
      children = 0
      while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
        20.times { Object.new }
        pid = fork do
          5000.times { Object.new }
          profile = Sonde.stop
          exit!(profile && profile.totals["alloc-samples"] >= 5000 ? 0 : 1)
        end
        children += 1
        Process.wait(pid)
        abort "child: \#{$?}" unless $?.success?
      end
      puts children, Sonde.stop.totals["alloc-samples"] > 20 * children
    RUBY
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-I#{ROOT}/lib", "-e", script)
    assert status.success?, out
    assert_equal "true", out.lines.last.chomp
  end

  def test_under_gc_stress_and_compaction
    decoded = profile do
      GC.stress = true
      begin
        200.times { Point.new([1], "x" * 100) }
      ensure
        GC.stress = false
      end
      allocate(0.5) do
        Point.new([1], +"y")
        GC.compact if GC.respond_to?(:compact) && rand < 0.00005
      end
      ObjectSpace.each_object(Point) { |point| point.x }
    end
    assert_operator decoded.total("alloc-samples-unscaled", &of_class("AllocTest::Point")), :>, 0
  end

  def test_at_the_end_of_the_process
    script = 'require "sonde"; Sonde.start(modes: %i[alloc]); Thread.new { loop { Object.new } }; sleep 0.15; '
    ["exit", "exit!(0)", "at_exit { 10_000.times { Object.new } }", "raise SystemExit"].each do |ending|
      3.times do
        out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-I#{ROOT}/lib", "-e", script + ending)
        assert status.success?, out
      end
    end
  end
end
