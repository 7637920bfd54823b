# frozen_string_literal: true

# Everything at once, with profiles starting and ending all the time:
#   ruby -Ilib test/support/stress.rb [SECONDS [SEED]]
# Every profile is read back. Prints a summary; exit status 1 if something was wrong.
require "sonde"
require "timeout"
require "zlib"
require_relative "pprof_decoder"

class Stress
  # What goes on in the application. Each runs in a thread of its own, again and again.
  module Work
    module_function

    def compute(random)
      i = 0
      i += 1 while i < random.rand(200_000)
    end

    def allocate(random)
      words = Array.new(random.rand(2000)) { |i| "#{i}#{random.rand(1000)}" }
      words.sort.group_by(&:size).map { |size, list| [size, list.join] }.to_h
    end

    def compress(random)
      Zlib::Deflate.deflate(random.bytes(random.rand(1 << 18)))
    end

    def wait(random)
      sleep(random.rand / 100)
      Thread.pass
    end

    def fibers(random)
      list = Array.new(20) { |i| Fiber.new { |x| 3.times { x = Fiber.yield(x.to_i + i) }; x } }
      3.times { list.each { |fiber| fiber.resume(random.rand(9)) } }
      numbers = Enumerator.new { |y| 50.times { |i| y << i } }
      loop { numbers.next }
    end

    def exceptions(random)
      20.times { |depth| catch(:out) { deep(depth) { throw :out if random.rand(2).zero?; raise ArgumentError, "x" } } }
    rescue ArgumentError
      deep(random.rand(300)) { nil }
    end

    def too_deep(_random)
      endless(0)
    rescue SystemStackError
      sleep 0.05 # often enough
    end

    def time_outs(random)
      Timeout.timeout(0.003) { random.rand(2).zero? ? sleep(0.01) : compute(random) }
    rescue Timeout::Error
      nil
    end

    # Code that is gone before anybody asks for its name. Not too many names: the VM keeps those of methods for ever.
    def evals(random)
      name = "gone_#{random.rand(1000)}"
      holder = Class.new { class_eval("def #{name}; 2000.times { |i| i.to_s }; end", "/nowhere/#{name}.rb", 7) }
      holder.new.send(name)
      eval("lambda { |x| x * 2 }", binding, "(nowhere)", 1).call(4) # rubocop:disable Style/EvalWithLocation
      holder.send(:remove_method, name)
    end

    def threads(random)
      list = Array.new(5) { |i| Thread.new { Thread.current.name = "short #{i}"; compute(random) } }
      victim = Thread.new { sleep }
      victim.report_on_exception = false
      random.rand(2).zero? ? victim.kill : victim.raise(IOError, "from outside")
      (list << victim).each { |thread| join(thread) }
    end

    def collect(random)
      case random.rand(4)
      when 0 then GC.start(full_mark: false)
      when 1 then GC.start
      when 2 then GC.compact if GC.respond_to?(:compact)
      end
      sleep 0.02
    end

    # A child profiles itself, or just ends; its status must be its own.
    def forks(random)
      status = random.rand(1..99)
      pid = fork do
        PprofDecoder.decode(Sonde.profile { compute(random) }.to_pprof) if random.rand(2).zero?
        random.rand(2).zero? ? exit!(status) : Process.kill(:KILL, Process.pid)
      end
      _, ended = Process.wait2(pid)
      raise "a child ended with #{ended}" unless ended.exitstatus == status || ended.termsig == 9
      sleep 0.1
    end

    def commands(random)
      raise "a command failed" unless system("exit 0")
      sleep(random.rand / 10)
    end

    # Their handlers (see Stress#run) use Sonde.
    def signals(random)
      Process.kill(%i[USR1 USR2].sample(random: random), Process.pid)
      sleep(random.rand / 10)
    end

    def labels(random)
      Sonde.label("stress" => random.rand(50).to_s) do
        Fiber.new { Sonde.label("fiber" => "yes") { compute(random) } }.resume
        Sonde.label("inner" => random.rand(9)) { allocate(random) }
      end
    end

    def ractors(random)
      ractor = Ractor.new(random.rand(2000)) { |n| Array.new(n) { |i| "#{i}" * 3 }.sort.size }
      ractor.respond_to?(:value) ? ractor.value : ractor.take
      sleep 0.2
    end

    def join(thread)
      thread.join
    rescue IOError
      nil # that is how it was meant to end
    end

    def deep(levels, &block)
      levels.zero? ? block.call : deep(levels - 1, &block)
    end

    def endless(level)
      endless(level + 1) + 1
    end
  end

  # The resident memory of this process, looked at each second. The first third of the time is left out, in which Ruby's
  # own heap grows; of the two others the medians are compared, since single values jump with each collection.
  class Memory
    ENOUGH = 300 # seconds; in a shorter time a growth could not be told from noise
    SHARE = 0.06
    MEGABYTES = 4

    def initialize(seconds)
      @seconds = seconds
      @values = []
    end

    def look
      @values << File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i / 1024.0
    end

    # :flat, :grows, or :unknown after too short a time.
    def verdict
      return :unknown if @seconds < ENOUGH || @values.size < 30

      growth > [MEGABYTES, SHARE * middle].max ? :grows : :flat
    end

    def text
      judged = @seconds < ENOUGH ? "too short a time to judge" : format("%+.1f MB in a third of the time", growth)
      format("%.0f MB at the start, %.0f at most, %.0f at the end; %s: %s", @values.first, @values.max, @values.last,
             verdict, judged)
    end

    private

    def growth
      median(@values.last(@values.size / 3)) - middle
    end

    def middle
      median(@values[@values.size / 3, @values.size / 3])
    end

    def median(values)
      values.sort[values.size / 2] || 0.0
    end
  end

  KINDS = Work.singleton_methods(false) - %i[join deep endless ractors]
  # Ractors are as unstable as the Ruby they are in, and before 3.3 nothing is sampled while they live: only on request.
  RACTORS = ENV["SONDE_STRESS_RACTORS"] == "1" ? %i[ractors] : [].freeze

  def initialize(seconds, seed)
    @seconds = seconds
    @seed = seed
    @memory = Memory.new(seconds)
    @counts = Hash.new(0)
    @flushed_by_signals = 0
    @lock = Mutex.new
    @problems = []
  end

  # Answers whether all was right.
  def run
    @deadline = now + @seconds
    @modes = possible_modes
    @memory.look
    trap("USR1") { Sonde.status }
    trap("USR2") { Sonde.running? && Sonde.flush && @flushed_by_signals += 1 }
    workers = (KINDS + RACTORS).each_with_index.map { |kind, i| start(kind.to_s, i) { |random| work(kind, random) } }
    users = [start("start and stop", 100) { |random| start_and_stop(random) },
             start("profile", 101) { |random| profile_blocks(random) },
             start("interrupted", 102) { |random| interrupted(random) }]
    while now < @deadline
      sleep 1
      @memory.look
    end
    (workers + users).each(&:join)
    Sonde.stop
    summary
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # What this Ruby allows; asked of the user's own command.
  def possible_modes
    refused = Sonde::Native.features
    more = { alloc: "allocations (mode alloc)", heap: "living objects (mode heap)" }
    more = more.reject { |mode, feature| refused[feature] || (mode == :alloc && RACTORS.any? && RUBY_VERSION < "3.3") }
    [%i[cpu wall], %i[cpu], %i[wall], *more.keys.map { |mode| [mode] }, %i[cpu wall] + more.keys].uniq
  end

  def start(name, number)
    Thread.new do
      Thread.current.name = name
      random = Random.new(@seed + number)
      begin
        while now < @deadline
          yield random
          count(name)
        end
      rescue StandardError => e
        problem("#{name}: #{e.class}: #{e.message} at #{e.backtrace.first}")
      end
    end
  end

  # With pauses: threads that never let go of the GVL would leave hardly any starts and stops in a minute.
  def work(kind, random)
    Work.send(kind, random)
    sleep(random.rand / 50)
  end

  def count(what, by = 1)
    @lock.synchronize { @counts[what] += by }
  end

  def problem(text)
    @lock.synchronize { @problems << text }
  end

  def start_and_stop(random)
    Sonde.start(modes: @modes.sample(random: random), rate: [10, 100, 1000].sample(random: random),
                max_frames: [10, 2000].sample(random: random))
    count("starts")
    sleep(random.rand / 5)
    if random.rand(3).zero?
      count("flushes") if check(Sonde.flush)
      sleep(random.rand / 20)
    end
    Sonde.status
    check(Sonde.stop)
  end

  def profile_blocks(random)
    check(Sonde.profile { check(Sonde.profile { Work.allocate(random) }); Work.wait(random) })
    catch(:out) { Sonde.profile { throw :out } }
    Sonde.profile { raise KeyError, "from the block" }
  rescue KeyError
    count("blocks left by an exception")
  end

  # A thread that is in the middle of fetching a profile gets an exception from outside, or is killed.
  def interrupted(random)
    victim = Thread.new { 20.times { Sonde.profile { Thread.pass } } }
    victim.report_on_exception = false
    sleep(random.rand / 50)
    random.rand(2).zero? ? victim.kill : victim.raise(IOError, "from outside")
    Work.join(victim)
  end

  # Answers nil without a profile: another thread has stopped it meanwhile.
  def check(profile)
    return if profile.nil?

    samples = PprofDecoder.decode(profile.to_pprof).samples
    count("profiles")
    count("stacks read back", samples.size)
  rescue PprofDecoder::Invalid => e
    count("unreadable profiles")
    problem("a wrong profile: #{e.message}")
  end

  def summary
    problem("no profile was made") if @counts["profiles"].zero?
    problem("memory grows: #{@memory.text}") if @memory.verdict == :grows
    count("flushes", @flushed_by_signals)
    puts "stress: #{@seconds} s, seed #{@seed}, #{RUBY_DESCRIPTION}"
    puts "  memory: #{@memory.text}"
    @counts.sort.each { |what, times| puts format("  %-28s %d", what, times) }
    puts @problems.uniq.first(20).map { |text| "  WRONG: #{text}" }
    puts @problems.empty? ? "stress: all right" : "stress: #{@problems.size} problems"
    @problems.empty?
  end
end

if $PROGRAM_NAME == __FILE__
  abort "Sonde does not work here: #{Sonde.unsupported_reason}" unless Sonde.supported?
  exit(Stress.new(Float(ARGV[0] || 60), Integer(ARGV[1] || Random.new_seed % 100_000)).run ? 0 : 1)
end
