# frozen_string_literal: true

# Many processes that end while they are being profiled, at a random moment and in different ways:
#   ruby test/support/exits.rb [COUNT [SEED]]
# Each must end in time, with the status that it would have without Sonde, and without a word on stderr that is not its
# own. They profile in modes and at rates by turns, every third below `sonde run` as well.
require "rbconfig"
require "tmpdir"
require_relative "pprof_decoder"

class Exits
  LIB = File.expand_path("../../lib", __dir__)
  SONDE = File.expand_path("../../exe/sonde", __dir__)
  LIMIT = 120 # seconds; the machine may be busy

  # Way to end => [Ruby source, expected exit status or signal]
  WAYS = {
    "end of the program" => ["", 0],
    "exit" => ["exit 3", 3],
    "exit!" => ["exit! 4", 4],
    "abort" => ["$stderr.reopen(File::NULL); abort 'x'", 1],
    "exception" => ["$stderr.reopen(File::NULL); raise 'x'", 1],
    "exit in a thread" => ["Thread.new { exit 5 }; sleep", 5],
    "exit in at_exit" => ["at_exit { exit 6 }", 6],
    "work in at_exit" => ["at_exit { work(0.03) }", 0],
    "stop in at_exit" => ["at_exit { Sonde.stop.to_pprof }", 0],
    "stopped before" => ["Sonde.stop.to_pprof", 0],
    "in a profile block" => ["Sonde.profile { exit 7 }", 7],
    "exec" => ["exec('true')", 0],
    "SIGTERM" => ["Process.kill(:TERM, $$); sleep", "TERM"],
    "SIGINT" => ["$stderr.reopen(File::NULL); Process.kill(:INT, $$); sleep", "INT"],
    "SIGKILL" => ["Process.kill(:KILL, $$); sleep", "KILL"],
    "SIGHUP" => ["Process.kill(:HUP, $$); sleep", "HUP"],
    "a forked child" => ["_, s = Process.wait2(fork { work(0.02); exit 8 }); exit s.exitstatus", 8],
    # One that comes while Ruby itself starts ends it with 1, or is lost: without Sonde too (3.1, 3.3, 3.4).
    "TERM from outside" => [:TERM, ["TERM", 1]],
    "HUP from outside" => [:HUP, ["HUP", 1]],
    "KILL from outside" => [:KILL, "KILL"],
    "a thread blocks" => ["q = Queue.new; Thread.new { begin; q.pop; ensure; work(0.01); end }; sleep 0.005", 0]
  }.freeze

  # Its arguments: seconds of work before the end, rate, modes.
  PROGRAM = <<~'RUBY'
    require "sonde"
    def work(seconds)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      Array.new(50) { |i| i.to_s * 3 }.sort.join while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    end
    modes = ARGV[2].split(",").map(&:to_sym)
    modes.delete(:alloc) if Sonde::Native.features["allocations (mode alloc)"]
    modes.delete(:heap) if Sonde::Native.features["living objects (mode heap)"]
    Sonde.start(rate: Float(ARGV[1]), modes: modes) or abort "Sonde.start failed: #{Sonde.unsupported_reason}"
    3.times { Thread.new { loop { work(0.002); sleep 0.001 } } }
    Thread.new { loop { Thread.new { work(0.001) }.join } }
    work(Float(ARGV[0]))
  RUBY

  MODES = %w[cpu,wall cpu wall cpu,wall,alloc cpu,wall,heap].freeze
  LONGEST = 0.08 # seconds until the end
  LONGEST_OUTSIDE = 0.4 # likewise, from the start of the process: before, in and after the loading of Sonde

  def initialize(count, seed)
    @count = count
    @random = Random.new(seed)
    @seed = seed
    @problems = []
  end

  def run
    # A shell starts what is to go on in the background with these ignored, and then nothing below ends by them.
    %w[INT QUIT].each { |signal| trap(signal, "DEFAULT") }
    Dir.mktmpdir("sonde-exits") do |dir|
      @log = File.join(dir, "stderr")
      ways = WAYS.keys.cycle
      @count.times { one(ways.next) }
    end
    puts @problems.map { |text| "  WRONG: #{text}" }
    puts "exits: #{@count - @problems.size} of #{@count} clean, seed #{@seed}, #{RUBY_DESCRIPTION}"
    @problems.empty?
  end

  private

  def one(way)
    source, expected = WAYS.fetch(way)
    outside = source.is_a?(Symbol)
    after = (@random.rand * (outside ? LONGEST_OUTSIDE : LONGEST)).round(4)
    options = [outside ? "60" : after.to_s, [10, 100, 1000].sample(random: @random).to_s, MODES.sample(random: @random)]
    below = @random.rand(3).zero? && !outside
    pid = start(below, "#{PROGRAM}#{source unless outside}\n", options)
    sleep after if outside
    seen = wait(pid, outside ? source : nil)
    said = File.read(@log, encoding: "UTF-8").scrub.strip
    wrong = below ? unreadable : []
    right = Array(expected).include?(seen)
    return if right && said.empty? && wrong.empty?

    wrong << "status #{seen.inspect} instead of #{expected.inspect}" unless right
    wrong << "it said: #{said[0, 2000]}" unless said.empty?
    @problems << "#{way}#{", below sonde run" if below}, after #{options.join(" ")}: #{wrong.join("; ")}"
  end

  # What is wrong with the file of `sonde run`.
  def unreadable
    file = "#{@log}.pb.gz"
    PprofDecoder.read(file) if File.exist?(file)
    []
  rescue PprofDecoder::Invalid, Zlib::Error => e
    ["its profile cannot be read: #{e.message}"]
  ensure
    FileUtils.rm_f(file)
  end

  def start(below, source, options)
    command = [RbConfig.ruby, "-w", "-I#{LIB}", "-e", source, *options]
    command = [RbConfig.ruby, SONDE, "run", "--quiet", "-o", "#{@log}.pb.gz", "--", *command] if below
    Process.spawn(*command, in: File::NULL, %i[out err] => @log, pgroup: true)
  end

  # signal: to be sent, each second anew.
  def wait(pid, signal)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT
    sent = nil
    while (now = Process.clock_gettime(Process::CLOCK_MONOTONIC)) < deadline
      if signal && (sent.nil? || now > sent + 1)
        Process.kill(signal, pid)
        sent = now
      end
      _, status = Process.wait2(pid, Process::WNOHANG)
      return status.exitstatus || Signal.signame(status.termsig) if status

      sleep 0.005
    end
    Process.kill(:KILL, -pid)
    Process.wait(pid)
    "still there after #{LIMIT} s"
  end
end

if $PROGRAM_NAME == __FILE__
  exit(Exits.new(Integer(ARGV[0] || 500), Integer(ARGV[1] || Random.new_seed % 100_000)).run ? 0 : 1)
end
