# frozen_string_literal: true

require "test_helper"
require "open3"

# Allocations and living objects (where this Ruby allows them) beside what is hard on a VM, each in its own process.
class MemoryModesTest < Minitest::Test
  include TestHelper

  HEAD = <<~'RUBY'
    require "sonde"
    modes = { alloc: "allocations (mode alloc)", heap: "living objects (mode heap)" }
    MODES = modes.reject { |_, feature| Sonde::Native.features[feature] }.keys
    exit if MODES.empty?
    Node = Struct.new(:value)
    def for_some_time(seconds)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      yield while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    end
    def work(kept)
      50.times { |i| kept << Node.new("x" * (i * 100)) << [i] * 20 << { i => "y" } << Object.new }
      kept.shift(kept.size / 2) if kept.size > 5_000
    end
    # Rows of that class, of a profile that is read back.
    def living(profile, name)
      return 0 unless MODES.include?(:heap)

      profile.top(by: "heap-live-samples", limit: 100_000, cumulative: true)
             .select { |entry| entry.name == name }.sum(&:cumulative)
    end
  RUBY

  def setup
    need_extension
  end

  def run_child(script)
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-W0", "-I#{ROOT}/lib", "-e", HEAD + script)
    assert status.success?, "#{status}\n#{out[-4000..-1] || out}"
    out.lines.map(&:chomp)
  end

  def test_collections_at_each_allocation
    run_child(<<~'RUBY')
      Sonde.start(modes: MODES)
      kept = []
      [true, 1, 4].each do |kind|
        for_some_time(0.3) { work(kept) }
        GC.stress = kind
        20.times { |i| kept << Node.new("z" * i) << [i] * 30 }
        Sonde.flush
        GC.stress = false
      end
      Sonde.stop.to_pprof
      kept.each { |object| object.hash }
    RUBY
  end

  def test_compaction
    run_child(<<~'RUBY')
      compacts = GC.respond_to?(:compact)
      begin
        GC.auto_compact = true if GC.respond_to?(:auto_compact=)
        GC.compact if compacts
      rescue NotImplementedError
        compacts = false
      end
      Sonde.start(modes: MODES)
      kept = []
      6.times do
        for_some_time(0.1) { work(kept) }
        GC.compact if compacts
        Sonde.flush
        kept.each { |object| object.is_a?(Node) && object.value.size }
      end
      Sonde.stop.to_pprof
    RUBY
  end

  def test_objects_are_enumerated_meanwhile
    run_child(<<~'RUBY')
      Sonde.start(modes: MODES)
      kept = []
      done = false
      other = Thread.new { ObjectSpace.each_object(Node) { |node| node.value.to_s.size } until done }
      for_some_time(1.5) { work(kept) }
      Sonde.flush
      done = true
      other.join
      ObjectSpace.each_object { |object| Object.instance_method(:class).bind(object).call if Object === object }
      Sonde.stop.to_pprof
    RUBY
  end

  def test_ractors_allocate_meanwhile
    skip "Ruby before 3.3 has none, or they end it" if RUBY_VERSION < "3.3"
    out = run_child(<<~'RUBY')
      Sonde.start(modes: MODES)
      kept = []
      ractors = Array.new(3) { |k| Ractor.new(k) { |n| Array.new(60_000) { |i| [i, "#{n} #{i}"] }.size } }
      for_some_time(1.0) { work(kept) }
      ractors << Ractor.new { 20.times { GC.start; Array.new(500) { "x" * 50 } } && 60_000 }
      for_some_time(0.5) { work(kept) }
      puts(ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }.inspect)
      for_some_time(0.3) { work(kept) }
      2.times { GC.start }
      profile = Sonde.stop
      puts profile.top(by: "alloc-samples", limit: 1000, cumulative: true).any? { |entry| entry.name == "Object#work" }
    RUBY
    assert_equal ["[60000, 60000, 60000, 60000]", "true"], out
  end

  def test_forks_meanwhile
    run_child(<<~'RUBY')
      Sonde.start(modes: MODES)
      kept = []
      12.times do |i|
        for_some_time(0.03) { work(kept) }
        pid = fork do
          for_some_time(0.1) { work(kept) }
          GC.start
          GC.compact if i.odd? && RUBY_VERSION >= "3.3"
          profile = i % 3 == 0 ? Sonde.flush : Sonde.stop
          exit!(profile && profile.totals["alloc-samples"].to_i > 0 ? 0 : 1) if MODES.include?(:alloc)
          exit!(0)
        end
        Process.wait(pid)
        abort "child #{i}: #{$?}" unless $?.success?
      end
      Sonde.stop.to_pprof
    RUBY
  end

  def test_the_process_ends_meanwhile
    before = "Sonde.start(modes: MODES); kept = []; Thread.new { loop { work(kept) } }; sleep 0.05; " \
             "for_some_time(0.15) { work([]) };"
    ["exit", "exit!(0)", "at_exit { GC.start; work(kept) }", "Thread.new { exit }; sleep", "GC.stress = true",
     "exec('true')", "ObjectSpace.define_finalizer(kept, proc { 1000.times { Object.new } })"].each do |ending|
      run_child("#{before} #{ending}")
    end
  end

  # What was dropped and collected must not be shown, whoever sits in its slot now.
  def test_no_false_object
    out = run_child(<<~'RUBY')
      (puts "true") || exit unless MODES.include?(:heap)
      def drop(list)
        40.times { list << Node.new("x" * 50) }
      end
      def take(list)
        40.times { list << "y" * 50 << Struct.new(:a).new(1) if list.size < 100_000 }
      end
      Sonde.start(modes: MODES)
      first = []
      for_some_time(1.0) { drop(first) }
      first.clear
      second = []
      3.times { GC.start }
      for_some_time(1.0) { take(second) }
      GC.compact if GC.respond_to?(:compact)
      3.times { GC.start }
      profile = Sonde.stop
      puts living(profile, "Object#drop") * 20 <= living(profile, "Object#take"), living(profile, "Object#take") > 0
    RUBY
    refute_includes out, "false"
  end
end
