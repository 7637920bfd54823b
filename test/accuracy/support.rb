# frozen_string_literal: true

require_relative "../support/pprof_decoder"

# What the accuracy workloads share: clocks, a profiled window, and the frame of a workload.
module Accuracy
  GC_FRAME = "(garbage collection)"

  module_function

  def thread_cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  def process_cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  # Iterations of `i += 1 while i < n` in a millisecond of CPU on this Ruby and machine.
  def iterations_per_ms
    @iterations_per_ms ||= Array.new(5) { iterations_in_20_ms / 20 }.max
  end

  def iterations_in_20_ms
    total = 0
    deadline = thread_cpu + 20_000_000
    while thread_cpu < deadline
      i = 0
      i += 1 while i < 10_000
      total += i
    end
    total
  end

  # CPU of known owners, as their own thread's clock saw it. One ledger for each thread; merged afterwards.
  class Ledger
    def initialize
      @entries = Hash.new(0)
    end

    def clock(owner)
      before = Accuracy.thread_cpu
      result = yield
      @entries[owner] += Accuracy.thread_cpu - before
      result
    end

    def add(owner, nanoseconds)
      @entries[owner] += nanoseconds
    end

    def [](owner)
      @entries[owner]
    end

    def total(*owners)
      owners.sum { |owner| @entries[owner] }
    end

    def self.merged(ledgers)
      ledgers.each_with_object(new) { |ledger, all| ledger.each { |owner, value| all.add(owner, value) } }
    end

    def each(&block)
      @entries.each(&block)
    end
  end

  # A profiled stretch of time: the decoded profile, and two brackets of its length: just inside start and stop, and
  # just outside of them. The profile's own window lies between the two.
  Window = Struct.new(:profile, :wall, :cpu, :status, keyword_init: true)
  Bracket = Struct.new(:inside, :outside)

  def window(**options)
    iterations_per_ms # calibrates once, and not in the window
    outer = [now, process_cpu]
    Sonde.start(budget: 1, **options) || raise("Sonde.start answered false: #{Sonde.unsupported_reason.inspect}")
    begin
      begun = [now, process_cpu]
      yield
      ended = [now, process_cpu]
      status = Sonde.status
    ensure
      profile = Sonde.stop
    end
    closed = [now, process_cpu]
    Window.new(profile: PprofDecoder.decode(profile.to_pprof), status: status,
               wall: Bracket.new(ended[0] - begun[0], closed[0] - outer[0]),
               cpu: Bracket.new(ended[1] - begun[1], closed[1] - outer[1]))
  end

  # A known load. Subclasses say what they are and answer the checks of one run.
  class Workload
    class << self
      attr_reader :title

      def describe(title)
        @title = title
      end

      # NeverWakes -> never_wakes
      def id
        name.split("::").last.gsub(/(?<=.)[A-Z]/) { |letter| "_#{letter}" }.downcase
      end

      # Why this Ruby or machine cannot run it, or nil.
      def unavailable
        nil
      end

      def all
        @all ||= []
      end

      def inherited(subclass)
        super
        Workload.all << subclass
      end
    end

    # A list of checks (judge.rb) of one run of about so many seconds.
    def measure(_seconds)
      raise NotImplementedError
    end

    private

    def until_past(seconds)
      deadline = Accuracy.now + (seconds * 1_000_000_000).to_i
      yield while Accuracy.now < deadline
    end

    # Work lengths vary at random, so that no pattern of the workload meets one of the sampler. Same seed, same run.
    def random
      @random ||= Random.new(Integer(ENV["SONDE_SEED"] || 42))
    end

    def jitter
      0.5 + random.rand
    end

    def thread(name, &block)
      thread = Thread.new(&block)
      thread.name = name
      thread.report_on_exception = true
      thread
    end

    # Condition: any frame is this method ("Split#alpha"; blocks in it count as well).
    def within(method)
      ->(sample) { sample.frames.any? { |frame| method_of(frame) == method } }
    end

    # Condition: this method is the leaf. A GC that ran into it is its own leaf frame, and the clocks of the workload
    # saw that GC as part of the method, so it is looked through.
    def leaf_in(pattern)
      lambda do |sample|
        leaf = sample.frames.find { |frame| frame.name != GC_FRAME }
        !leaf.nil? && (pattern.is_a?(Regexp) ? pattern.match?(leaf.name) : method_of(leaf) == pattern)
      end
    end

    def in_thread(pattern)
      ->(sample) { pattern === sample.labels["thread name"] } # rubocop:disable Style/CaseEquality
    end

    # "block (2 levels) in Accuracy::Split#alpha" -> "Split#alpha"
    def method_of(frame)
      frame.name.sub(/\A.* in /, "").sub(/\AAccuracy::/, "")
    end

    def both(one, other)
      ->(sample) { one.call(sample) && other.call(sample) }
    end

    # CPU of `part` as a share of `whole`, beside what the workload's clocks say.
    def share(name, profile, part:, whole:, truth:, of:, spread: 1.0, long_phases: false)
      Share.new(name: name, truth_part: truth, truth_whole: of, spread: spread, long_phases: long_phases,
                seen_part: profile.total("cpu-time", &both(part, whole)), seen_whole: profile.total("cpu-time", &whole),
                samples: profile.total("cpu-samples", &whole))
    end
  end
end

require_relative "judge"
