# frozen_string_literal: true

require "test_helper"
require "objspace"
require "open3"
require_relative "../support/pprof_decoder"

# Living objects. Which of them are seen is sampled: what must be there is made in large numbers.
class HeapTest < Minitest::Test
  include TestHelper

  FEATURE = "living objects (mode heap)"
  Node = Struct.new(:value)

  class Plain < BasicObject; end

  def setup
    need_extension
    @reason = Sonde::Native.features[FEATURE]
  end

  def teardown
    Sonde.stop
  end

  def need_heap
    skip @reason if @reason
  end

  def for_some_time(seconds = 1.0)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    yield while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  end

  # Two collections: what is alive after them has surely seen one.
  def picture
    2.times { GC.start }
    yield
  end

  def leak
    Node.new("x" * 1000)
  end

  def churn
    Node.new("y" * 100)
  end

  def live(decoded, method, type = "heap-live-samples")
    decoded.total(type) { |sample| sample.frames.any? { |frame| frame.name == "HeapTest##{method}" } }
  end

  def worth(profile)
    profile.comments.find { |comment| comment.start_with?("heap:") }[/worth ([\d.]+)/, 1].to_f
  end

  def test_it_is_refused_where_weak_maps_are_broken
    skip "they are not, here" unless @reason
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-I#{ROOT}/lib", "-e",
                                  'require "sonde"; p Sonde.start(modes: %i[heap]); p Sonde.start(modes: %i[cpu])')
    assert status.success?, out
    assert_match(/Bug #19529.*false.*true/m, out)
  end

  def test_what_stays_is_seen_and_what_goes_is_not
    need_heap
    kept = []
    Sonde.start(modes: %i[heap])
    profile = nil
    15.times do # on a busy machine windows are few
      for_some_time(1.0) { kept << leak && 10.times { churn } }
      profile = picture { Sonde.flush }
      break if worth(profile) >= 8
    end
    decoded = PprofDecoder.decode(profile.to_pprof)
    # A node and its string. With a worth of n objects one standard error is 1 / sqrt(n).
    assert_operator worth(profile), :>=, 2
    allowed = 4 / Math.sqrt(worth(profile)) + 0.05
    total = profile.totals["heap-live-size"]
    stated = profile.standard_error(1.0, by: "heap-live-size")
    assert_in_delta Math.sqrt(0.25) * stated, profile.standard_error(0.25, by: "heap-live-size"), 1e-9
    assert_operator stated, :>, 0
    assert_operator total, :>, 0
    assert_in_delta 1.0, live(decoded, :leak).fdiv(2 * kept.size), allowed
    bytes = kept.size * (ObjectSpace.memsize_of(kept[0]) + ObjectSpace.memsize_of(kept[0].value))
    assert_in_delta 1.0, live(decoded, :leak, "heap-live-size").fdiv(bytes), 1.5 * allowed
    assert_operator live(decoded, :churn), :<, 0.05 * kept.size
    oldest = decoded.samples.select { |sample| sample.values["heap-live-samples"].positive? }
    assert(oldest.all? { |sample| sample.labels["gc gen age"].positive? })
    assert_includes oldest.map { |sample| sample.labels["allocation class"] }, "HeapTest::Node"

    kept.clear
    for_some_time(0.1) { churn }
    after = PprofDecoder.decode(picture { Sonde.stop }.to_pprof)
    assert_operator live(after, :leak), :<, 0.05 * live(decoded, :leak) + 1
  end

  def test_frozen_objects_and_basic_objects_are_followed_and_not_disturbed
    need_heap
    kept = []
    profile = Sonde.profile(modes: %i[heap]) do
      for_some_time(1.5) { kept << Plain.new << "z".dup.freeze << Node.new(1).freeze }
      2.times { GC.start }
    end
    classes = PprofDecoder.decode(profile.to_pprof).samples.map { |sample| sample.labels["allocation class"] }
    assert_includes classes, "HeapTest::Plain"
    assert_includes classes, "HeapTest::Node"
  end

  def test_nothing_is_kept_alive_by_being_followed
    need_heap
    GC.start
    before = ObjectSpace.each_object(Node).count # another test may have kept some
    Sonde.start(modes: %i[heap])
    for_some_time { leak }
    2.times { GC.start }
    for_some_time(0.1) { Object.new }
    assert_operator ObjectSpace.each_object(Node).count - before, :<, 200
    assert_operator Sonde.status[:heap][:objects_died], :>, 0
    shares = Sonde.status[:heap][:died_after_collections]
    assert_in_delta 1.0, shares.values.sum, 1e-6
    assert_operator shares["0"], :>, 0.5
  end

  # Minor collections only: what is followed must not have grown old by being looked at.
  def test_what_is_dropped_is_not_kept_until_a_major_collection
    need_heap
    profile = Sonde.profile(modes: %i[alloc heap]) { for_some_time { 1000.times { churn } } }
    decoded = PprofDecoder.decode(profile.to_pprof)
    assert_operator live(decoded, :churn), :<, decoded.total("alloc-samples") * 0.02
  end

  def test_the_picture_goes_to_the_window_that_asks
    need_heap
    kept = []
    other = nil
    inner = nil
    outer = Sonde.profile(modes: %i[heap]) do
      for_some_time { kept << leak }
      2.times { GC.start }
      other = Sonde.profile(modes: %i[heap]) { nil }
      inner = Sonde.profile(modes: %i[alloc]) { nil }
    end
    assert_operator outer.totals["heap-live-samples"], :>, 0
    # Once, not twice: the block's end took a picture too.
    assert_operator outer.totals["heap-live-samples"], :<, 1.5 * other.totals["heap-live-samples"]
    refute_includes inner.totals, "heap-live-samples"
    refute_nil kept
  end

  def test_beside_compaction_forks_and_each_object
    need_heap
    script = <<~RUBY
      require "sonde"
      Sonde.start(modes: %i[cpu alloc heap])
      kept = []
      GC.auto_compact = true if GC.respond_to?(:auto_compact=)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
      while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
        2000.times { kept << "x" * 100 }
        kept.shift(1500)
        GC.compact if GC.respond_to?(:compact) && rand < 0.05
        ObjectSpace.each_object(String) { |text| text.size } if rand < 0.05
        Sonde.flush if rand < 0.1
        if rand < 0.05
          pid = fork { 5000.times { kept << "y" * 50 }; GC.start; exit!(Sonde.stop ? 0 : 1) }
          Process.wait(pid)
          abort "child: \#{$?}" unless $?.success?
        end
      end
      GC.stress = true
      50.times { kept << "z" * 10 }
      GC.stress = false
      puts Sonde.stop.totals.key?("heap-live-size")
    RUBY
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-I#{ROOT}/lib", "-e", script)
    assert status.success?, out
    assert_equal "true", out.lines.last.chomp
  end
end
