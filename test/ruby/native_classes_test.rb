# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"

# The classes that the extension defines: nobody gets one without its insides, and wrong arguments are told apart.
class NativeClassesTest < Minitest::Test
  include TestHelper

  WHERE = /\(\w+\.c:\d+, \w+\)\z/.freeze
  GOOD = [[:cpu, :wall], 100.0, 2000, 1 << 20].freeze
  WRONG_WINDOWS = {
    [nil, 100.0, 2000, 0] => [TypeError, /\Amodes must be a T_ARRAY, not a NilClass/],
    [[], 100.0, 2000, 0] => [ArgumentError, /\Amodes must be an Array of at least one mode, not \[\]/],
    [["cpu"], 100.0, 2000, 0] => [TypeError, /\Amode must be a T_SYMBOL, not a String/],
    [[:gpu], 100.0, 2000, 0] => [ArgumentError, /\Amode must be :cpu, :wall, :alloc or :heap, not :gpu/],
    [[:cpu], "fast", 2000, 0] => [ArgumentError, /\Arate must be a Float or an Integer, not "fast"/],
    [[:cpu], Float::NAN, 2000, 0] => [ArgumentError, /\Arate must be between 0.1 and 10000 Hz, not NaN/],
    [[:cpu], 0, 2000, 0] => [ArgumentError, /\Arate must be between/],
    [[:cpu], 1 << 70, 2000, 0] => [ArgumentError, /\Arate must be a Float or an Integer/],
    [[:cpu], 100.0, nil, 0] => [TypeError, /\Amax_frames must be a T_FIXNUM, not a NilClass/],
    [[:cpu], 100.0, 3, 0] => [ArgumentError, /\Amax_frames must be between 4 and 16384, not 3/],
    [[:cpu], 100.0, 2000, 1.5] => [TypeError, /\Amemory_limit must be a T_FIXNUM, not a Float/],
    [[:cpu], 100.0, 2000, -1] => [ArgumentError, /\Amemory_limit must be 0 \(no limit\) or a number of bytes, not -1/],
    [[:cpu], 100.0, 2000, 0, "all"] => [ArgumentError, /\Abudget must be a Float or an Integer, not "all"/],
    [[:cpu], 100.0, 2000, 0, 0] => [ArgumentError, /\Abudget must be between 0.0001 and 1, not 0/]
  }.freeze

  def setup
    need_extension
  end

  def teardown
    @window&.close
  end

  def test_cpu_time_is_added_to_a_profile_of_cpu_time_only
    profile = native::Profile.read(Sonde.profile(modes: [:cpu]) { nil }.to_pprof.then { |bytes| Zlib.gunzip(bytes) })
    before = profile.totals["cpu-time"]
    2.times { assert profile.add_cpu("(start of Ruby)", 5_000, 77) }
    assert profile.add_cpu("(not profiled)", 6_000, nil)
    added = PprofDecoder.decode(profile.encode).samples.map do |one|
      [one.frames.first.name, one.values["cpu-time"], one.labels]
    end
    main = { "thread id" => "77", "thread name" => "main", "state" => "running" }
    assert_includes added, ["(start of Ruby)", 10_000, main]
    assert_includes added, ["(not profiled)", 6_000, {}]
    assert_equal before + 16_000, profile.totals["cpu-time"]
    assert_raises(ArgumentError) { profile.add_cpu("x", -1, nil) }
    assert_raises(TypeError) { profile.add_cpu(:x, 1, nil) }
    assert_raises(TypeError) { profile.add_cpu("x", 1, "77") }
    wall = native::Profile.read(Zlib.gunzip(Sonde.profile(modes: [:wall]) { nil }.to_pprof))
    refute wall.add_cpu("x", 1, nil)
  end

  def native
    Sonde::Native
  end

  def open_window(*arguments)
    @window = native.open_window(*(arguments.empty? ? GOOD : arguments))
  end

  def profile
    Sonde.profile { burn(0.03) }
    window = native.open_window(*GOOD)
    burn(0.03)
    window.close
  end

  def assert_cannot_be_made(klass)
    [klass, Class.new(klass)].each do |one|
      assert_raises(TypeError) { one.allocate }
      assert_raises(NoMethodError) { one.new }
    end
  end

  def assert_cannot_be_copied(object)
    assert_raises(TypeError) { object.dup }
    assert_raises(TypeError) { object.clone }
    assert_raises(TypeError) { Marshal.dump(object) }
    # A class without an allocator cannot be loaded either.
    name = object.class.name
    assert_raises(TypeError, ArgumentError) { Marshal.load("\x04\bo:#{(name.bytesize + 5).chr}#{name}\0".b) }
  end

  def test_nobody_can_make_a_window_or_a_profile_by_hand
    assert_cannot_be_made(native::Window)
    assert_cannot_be_made(native::Profile)
  end

  def test_windows_and_profiles_cannot_be_copied
    assert_cannot_be_copied(open_window)
    assert_cannot_be_copied(profile)
  end

  def test_methods_of_one_class_refuse_objects_of_another
    window = open_window
    assert_raises(TypeError) { native::Window.instance_method(:flush).bind_call(Object.new) }
    assert_raises(TypeError) { profile.merge(window, nil) }
    assert_raises(TypeError) { profile.merge(1, nil) }
  end

  def test_a_wrong_argument_is_named_with_what_was_expected_and_where
    WRONG_WINDOWS.each do |arguments, (kind, message)|
      error = assert_raises(kind, arguments.inspect) { native.open_window(*arguments) }
      assert_match message, error.message
      assert_match WHERE, error.message
    end
    refute native.running?
  end

  def test_wrong_arguments_of_profiles_are_named_too
    one = profile
    wrong = [
      [TypeError, /\Abytes must be a T_STRING/, -> { native::Profile.read(nil) }],
      [TypeError, /\Alimit must be a T_FIXNUM/, -> { native::Profile.read("", "much") }],
      [ArgumentError, /\Alimit must be 0/, -> { native::Profile.read("", -1) }],
      [TypeError, /\Akey must be a T_STRING/, -> { one.merge(profile, { 1 => "x" }) }],
      [TypeError, /\Avalue must be a T_STRING/, -> { one.merge(profile, { "x" => nil }) }],
      [TypeError, /\Alabels must be a T_HASH/, -> { one.merge(profile, 5) }],
      [ArgumentError, /\Aother must be another profile/, -> { one.merge(one, nil) }],
      [TypeError, /\Atype_name must be a T_STRING/, -> { one.top(nil, 1, false) }],
      [ArgumentError, /\Atype_name must be a sample type of the profile, not "x"/, -> { one.top("x", 1, false) }],
      [ArgumentError, /\Alimit must be between 1 and 1000000, not 0/, -> { one.top("cpu-time", 0, false) }]
    ]
    wrong.each do |kind, message, call|
      error = assert_raises(kind, &call)
      assert_match message, error.message
      assert_match WHERE, error.message
    end
  end

  def test_too_many_labels_are_refused
    labels = Array.new(33) { |i| ["key #{i}", "value"] }.to_h
    assert_match(/at most 32 labels/, assert_raises(ArgumentError) { profile.merge(profile, labels) }.message)
  end

  def test_a_window_shows_its_threads_counts_and_the_active_slot
    window = open_window
    thread = Thread.new { sleep }
    Thread.pass until thread.stop?
    form = /\A#<Sonde::Native::Window open for (\d+\.\d+) s, (\d+) threads, slot ([01]) active, (\d+) samples merged>\z/
    assert_match form, window.inspect
    assert_operator window.inspect[form, 2].to_i, :>=, 2
    slot = window.inspect[form, 3]
    window.flush
    refute_equal slot, window.inspect[form, 3]
    window.close
    assert_equal "#<Sonde::Native::Window closed>", window.inspect
    assert window.closed?
  ensure
    thread&.kill&.join
  end

  def test_a_profile_shows_its_counts
    assert_match(/\A#<Sonde::Native::Profile \d+ samples, \d+ stacks, \d+ functions, \d\.\d+ s>\z/, profile.inspect)
  end

  def test_a_closed_window_answers_nil
    window = open_window
    refute_nil window.flush
    refute_nil window.close
    assert_nil window.close
    assert_nil window.flush
  end

  def test_what_is_no_profile_is_refused
    random = Random.new(1)
    good = profile.encode
    inputs = ["\0", "x" * 100, "\xFF" * 1000, good[0, good.bytesize / 2], good + "\xFF".b]
    inputs += Array.new(200) { random.bytes(random.rand(1..300)) }
    # Fields that claim to be longer than anything there is.
    huge = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F".b
    inputs += [0x0A, 0x12, 0x1A, 0x22, 0x2A, 0x32].map { |key| [key].pack("C") + huge }
    inputs.each do |bytes|
      begin
        read = native::Profile.read(bytes.b)
        # Chance can make a profile: then it must be one.
        assert_instance_of native::Profile, read
      rescue Sonde::FormatError => e
        assert_match(/\Anot a pprof profile: ./, e.message)
      end
    end
    [inputs[1], inputs[3], inputs[4], inputs.last].each do |bytes|
      assert_raises(Sonde::FormatError) { native::Profile.read(bytes.b) }
    end
  end

  def test_every_truncation_and_many_damages_of_a_profile_are_survived
    good = profile.encode
    random = Random.new(2)
    steps = [good.bytesize / 300, 1].max
    variants = (0...good.bytesize).step(steps).map { |length| good.byteslice(0, length) }
    variants += Array.new(300) { damaged(good, random) }
    outcomes = variants.map do |bytes|
      begin
        native::Profile.read(bytes).encode
        :read
      rescue Sonde::FormatError
        :refused
      end
    end
    assert_includes outcomes, :refused
  end

  def damaged(bytes, random)
    copy = bytes.dup
    3.times { copy.setbyte(random.rand(copy.bytesize), random.rand(256)) }
    copy
  end

  def test_reading_stays_below_a_memory_limit
    bytes = profile.encode
    assert_raises(Sonde::Error) { native::Profile.read(bytes, 100) }
    assert_equal bytes.bytesize, native::Profile.read(bytes, 1 << 26).encode.bytesize
  end

  def test_a_profile_that_two_threads_use_at_once_stays_whole
    shared = profile
    other = profile
    expected = shared.totals.fetch("cpu-time")
    step = other.totals.fetch("cpu-time")
    merged = Queue.new
    threads = Array.new(4) do |i|
      Thread.new do
        200.times do
          begin
            if i.even?
              shared.merge(other, { "n" => "1" })
              merged.push(1)
            else
              [shared.encode, shared.top("cpu-time", 5, true), shared.inspect]
            end
          rescue Sonde::Error => e
            raise unless e.message == "another thread is working on this profile"
          end
        end
      end
    end
    threads.each(&:join)
    assert_equal expected + step * merged.size, shared.totals.fetch("cpu-time")
    assert_equal shared.totals, native::Profile.read(shared.encode).totals
  end

  def test_a_window_whose_object_is_collected_closes_itself
    # In a thread of its own, so that no reference to it stays on this one's stack.
    Thread.new { native.open_window(*GOOD) && nil }.join
    100.times do
      break unless native.running?

      GC.start
      Array.new(1000) { Object.new }
    end
    skip "the garbage collector keeps the window" if native.running?

    burn(0.1) # no profile is running: this must be in none
    again = Sonde.profile(modes: [:wall]) { sleep 0.1 }
    main = PprofDecoder.decode(again.to_pprof).total("wall-time") { |sample| sample.labels["thread name"] == "main" }
    assert_operator main, :<, (again.duration * 1.05 + 0.05) * 1_000_000_000
  end
end
