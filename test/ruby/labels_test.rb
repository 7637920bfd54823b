# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"

# Labels with the real engine: what is in the profile is what held where the sample was taken.
class LabelsTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
  end

  def profile(rate: 1000, **options, &block)
    PprofDecoder.decode(Sonde.profile(rate: rate, **options, &block).to_pprof)
  end

  def cpu_by(profile, key)
    profile.samples.group_by { |sample| sample.labels[key] }
           .transform_values { |samples| samples.sum { |sample| sample.values["cpu-time"] } / 1e9 }
  end

  def burn_a(seconds)
    burn(seconds)
  end

  def burn_b(seconds)
    burn(seconds)
  end

  # Samples whose stack says that another label should be on them.
  def wrong(profile, expected)
    profile.samples.select do |sample|
      names = sample.frames.map(&:name)
      expected.any? { |name, label| names.any? { |n| n.end_with?(name) } && sample.labels["job"] != label }
    end
  end

  def test_the_block_is_labelled_and_what_is_around_it_is_not
    profile = profile do
      burn(0.1)
      assert_equal :result, Sonde.label(job: "a") { burn(0.2); :result }
      burn(0.1)
    end
    burned = profile.samples.select { |sample| sample.frames.any? { |frame| frame.name.end_with?("burn") } }
    cpu = burned.group_by { |sample| sample.labels["job"] }
                .transform_values { |samples| samples.sum { |sample| sample.values["cpu-time"] } / 1e9 }
    assert_in_delta 0.2, cpu["a"], 0.1
    assert_in_delta 0.2, cpu[nil], 0.1
  end

  def test_nested_blocks_add_and_the_inner_one_wins
    Sonde.label(job: "a", n: 3) do
      assert_equal({ "job" => "a", "n" => 3 }, Sonde.labels)
      Sonde.label("job" => :b, more: "x") do
        assert_equal({ "job" => "b", "n" => 3, "more" => "x" }, Sonde.labels)
      end
      assert_equal({ "job" => "a", "n" => 3 }, Sonde.labels)
    end
    assert_empty Sonde.labels
  end

  def test_numbers_are_numbers_in_the_profile
    big = (1 << 64) - 5
    profile = profile { Sonde.label("span id" => big, other: -3) { burn(0.05) } }
    labels = profile.samples.map(&:labels).find { |all| all["span id"] }
    assert_equal [big - (1 << 64), -3], labels.values_at("span id", "other")
  end

  # Readers drop a label with the number 0.
  def test_zero_is_a_text
    profile = profile { Sonde.label(shard: 0) { burn(0.1) } }
    assert_includes profile.samples.map { |sample| sample.labels["shard"] }.uniq, "0"
  end

  def test_however_the_block_ends
    assert_raises(RuntimeError) { Sonde.label(job: "a") { Sonde.label(job: "b") { raise "planned" } } }
    assert_equal(3, catch(:out) { Sonde.label(job: "a") { throw :out, 3 } })
    Thread.new { Sonde.label(job: "a") { Thread.exit } }.join
    assert_empty Sonde.labels
  end

  def test_odd_values
    Sonde.label(a: nil, b: "", c: "x" * 500, d: "nul\0s", e: "\xFFbad", f: 1 << 80, g: 1.5, h: "\xE4".b, "i" => [1]) do
      labels = Sonde.labels
      assert_equal %w[c d e f g h i], labels.keys
      assert_equal ["x" * 200, "nuls", "?bad", (1 << 80).to_s, "1.5"], labels.values_at("c", "d", "e", "f", "g")
    end
    Sonde.label((0...50).map { |i| ["k#{i}", i] }.to_h) { assert_equal 32, Sonde.labels.size }
    assert_raises(ArgumentError) { Sonde.label("no hash") { nil } }
    assert_raises(ArgumentError) { Sonde.label(a: 1) }
  end

  def test_threads_and_fibers_made_inside_have_them_only_where_asked
    seen = []
    Sonde.label(job: "a") do
      Thread.new { seen << Sonde.labels }.join
      Fiber.new { seen << Sonde.labels }.resume
      Thread.new(&Sonde.carry { seen << Sonde.labels }).join
      Fiber.new(&Sonde.carry { seen << Sonde.labels }).resume
      Thread.new(1, 2, &Sonde.carry { |a, b| seen << [a, b] }).join
    end
    assert_equal [{}, {}, { "job" => "a" }, { "job" => "a" }, [1, 2]], seen
  end

  def test_carried_labels_are_in_the_profile
    profile = profile { Sonde.label(job: "a") { Thread.new(&Sonde.carry { burn_a(0.1) }).join } }
    assert_empty wrong(profile, { "burn_a" => "a" })
    assert_in_delta 0.1, cpu_by(profile, "job")["a"], 0.05
  end

  # Each fiber has its own, whoever resumes it and however often.
  def test_two_fibers_and_ten_threads_that_switch_all_the_time
    stop = false
    work = lambda do
      a = Fiber.new { Sonde.label(job: "a") { loop { burn_a(0.00005); Fiber.yield } } }
      b = Fiber.new { Sonde.label(job: "b") { loop { burn_b(0.00005); Fiber.yield } } }
      until stop
        a.resume
        Sonde.label(job: "c") { b.resume }
      end
    end
    profile = profile do
      threads = Array.new(10) { Thread.new(&work) }
      sleep 2
      stop = true
      threads.each(&:join)
    end
    assert_empty wrong(profile, { "burn_a" => "a", "burn_b" => "b" }).map { |s| [s.frames.map(&:name), s.labels] }
    cpu = cpu_by(profile, "job")
    assert_operator cpu["a"] + cpu["b"], :>, 0.5 * profile.total("cpu-time") / 1e9
  end

  def red
    40.times { |i| i * i }
  end

  def blue
    40.times { |i| i * i }
  end

  # Two fibers that change their labels all the time, each in a colour that its method's name tells; and whose they are.
  def switch_labels(number, until_then)
    fibers = %i[red blue].map do |colour|
      method = method(colour)
      Fiber.new do
        count = 0
        loop do
          3.times { |i| Sonde.label(job: "#{colour} of #{number}", turn: i + 1) { method.call } }
          Fiber.yield(count += 3)
        end
      end
    end
    counts = fibers.map(&:resume) while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < until_then
    counts.sum
  end

  def test_labels_that_change_ten_thousand_times_a_second
    switches = nil
    began = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    profile = profile(budget: 20) do
      threads = Array.new(10) do |number|
        Thread.new do
          Thread.current.name = "thread #{number}"
          switch_labels(number, Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.3)
        end
      end
      switches = threads.sum(&:value)
    end
    cpu = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - began
    assert_operator switches / cpu, :>, 10_000, "label switches for each second of CPU"
    coloured = profile.samples.map do |sample|
      colour = sample.frames.map { |frame| frame.name[/(?:\A|#)(red|blue)\z/, 1] }.compact.first
      [colour, sample.labels["thread name"], sample.labels["job"], sample.labels["turn"]] if colour
    end.compact
    wrong = coloured.reject do |colour, thread, job, turn|
      job == "#{colour} of #{thread.delete_prefix("thread ")}" && (1..3).cover?(turn)
    end
    assert_empty wrong
    # Of twenty; samples are where they happen to be.
    assert_operator coloured.map { |_, thread, job, _| [thread, job] }.uniq.size, :>=, 10
  end

  def test_waiting_is_labelled_too
    profile = profile { Thread.new { Sonde.label(job: "waits") { sleep 0.3 } }.join }
    wall = profile.total("wall-time") { |sample| sample.labels["job"] == "waits" }
    assert_in_delta 0.3, wall / 1e9, 0.15
  end

  # Blocks that no sample fell into are forgotten; those that one fell into are, at the next flush.
  def test_any_number_of_values_over_time
    Sonde.start(rate: 1000)
    3.times do |round|
      30_000.times { |i| Sonde.label(user: "#{round}-#{i}") { i } }
      Sonde.flush
    end
    assert_equal 0, Sonde.status[:drops][:labels_overflowed]
  ensure
    Sonde.stop
  end

  def test_too_many_at_once_are_shown_as_such
    held = []
    profile = profile do
      # Never finished fibers hold their labels; there are fewer of them than the bound, with a lot of text each.
      fat = (0...32).map { |k| ["k#{k}" + "x" * 150, "v" * 200] }.to_h
      400.times do
        held << Fiber.new { Sonde.label(fat) { Fiber.yield } }
        held.last.resume
      end
      Sonde.label(fat) { burn(0.05) }
    end
    assert_operator Sonde.status[:drops][:labels_overflowed], :>, 0
    assert(profile.samples.any? { |sample| sample.labels["labels"] == "(overflow)" })
  ensure
    held&.each(&:resume)
  end

  def allocate_a
    100.times { Array.new(100) { Object.new } }
  end

  def test_what_is_allocated_has_them_too
    profile = PprofDecoder.decode(Sonde.profile(modes: [:alloc]) do
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
      until Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
        Sonde.label(job: "a") { allocate_a }
        Array.new(1000) { Object.new }
      end
    end.to_pprof)
    assert_empty wrong(profile, { "allocate_a" => "a" })
    assert_operator profile.total("alloc-samples") { |sample| sample.labels["job"] == "a" }, :>, 0
    assert_operator profile.total("alloc-samples") { |sample| sample.labels["job"].nil? }, :>, 0
  end

  # An enumerator that nobody asks for more: its block is never left.
  def test_fibers_that_are_abandoned_inside_a_block
    Sonde.start
    20_000.times do |i|
      Fiber.new { Sonde.label(i: i) { Fiber.yield } }.resume
      GC.start if (i % 2000).zero?
    end
    assert_equal 0, Sonde.status[:drops][:labels_overflowed]
  ensure
    Sonde.stop
  end

  def test_nothing_is_allocated_while_sampling
    Sonde.start(rate: 1000)
    Sonde.label(job: "a") do
      burn(0.05)
      before = GC.stat(:total_allocated_objects)
      i = 0
      i += 1 while i < 3_000_000
      assert_operator GC.stat(:total_allocated_objects) - before, :<, 20
    end
  ensure
    Sonde.stop
  end

  def test_a_child_goes_on_with_its_labels
    reader, writer = IO.pipe
    Sonde.start(rate: 1000)
    Sonde.label(job: "a") do
      pid = fork do
        burn_a(0.1)
        profile = PprofDecoder.decode(Sonde.stop.to_pprof)
        writer.write(cpu_by(profile, "job").keys.compact.join(","), wrong(profile, { "burn_a" => "a" }).size.to_s)
        writer.close
        exit!(0)
      end
      writer.close
      assert_equal "a0", reader.read
      Process.wait(pid)
    end
  ensure
    Sonde.stop
  end

  # Then they are gone; nothing worse happens.
  def test_a_thread_that_clears_its_variables
    Sonde.label(job: "a") do
      Sonde.label(job: "b") { Thread.current.keys.each { |key| Thread.current[key] = nil } }
      assert_empty Sonde.labels
    end
    assert_empty Sonde.labels
    Sonde.label(job: "c") { assert_equal({ "job" => "c" }, Sonde.labels) }
  end

  # What becomes known late holds for samples that were taken before, in blocks inside too.
  def test_a_label_that_is_amended
    profile = profile do
      entered = Sonde::Labels.enter(%w[endpoint ?])
      burn(0.05)
      Sonde.label(job: "a") { burn(0.05) }
      Sonde::Labels.amend(entered, "endpoint", "GET /x")
      Sonde::Labels.leave(entered)
    end
    assert_equal [nil, "GET /x"], profile.samples.map { |sample| sample.labels["endpoint"] }.uniq.sort_by(&:to_s)
    assert_in_delta 0.1, cpu_by(profile, "endpoint")["GET /x"], 0.07
  end

  # What is left in a wrong order, or in another fiber, ends all the same, and disturbs no other.
  def test_left_in_a_wrong_order
    outer = Sonde::Native.labels_enter(["a", "1"])
    inner = Sonde::Native.labels_enter(["b", "2"])
    Fiber.new do
      Sonde.label(c: 3) do
        Sonde::Native.labels_leave(outer)
        assert_equal({ "c" => 3 }, Sonde.labels)
      end
    end.resume
    assert_equal({ "b" => "2" }, Sonde.labels.reject { |key, _| key == "a" })
    Sonde::Native.labels_leave(outer)
    2.times { Sonde::Native.labels_leave(inner) }
    Sonde.label(d: 4) { assert_equal "4", Sonde.labels["d"].to_s }
  ensure
    Thread.current[:__sonde_labels] = nil
  end
end
