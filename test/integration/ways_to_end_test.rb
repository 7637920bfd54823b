# frozen_string_literal: true

require "test_helper"
require "json"
require "support/foreign_runs"

# Ends that are not in children_test.rb: fatal signals of every kind, ends inside of other ends, and memory that is
# really used up. Output and status are those of the same program without Sonde, and the profile is there wherever the
# process can still act.
class WaysToEndTest < Minitest::Test
  include TestHelper
  include ForeignRuns

  WORK = "def work; t = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.1; " \
         "nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < t; end; Process.setrlimit(:CORE, 0); " \
         "$stdout.sync = true; work\n"

  # Ruby turns these into an exception, so the process can still act.
  GENTLE = %w[INT TERM HUP QUIT USR1 USR2 ALRM].freeze
  # These end it at once.
  HARD = %w[KILL ABRT XCPU XFSZ PROF SYS IO PWR STKFLT TRAP VTALRM].freeze

  ENDS = {
    "at_exit in at_exit" => "at_exit { puts 1; at_exit { puts 2; exit 3 } }; at_exit { puts 4 }",
    "an exception in at_exit" => "at_exit { puts 1 }; at_exit { raise 'planned' }; at_exit { puts 2 }",
    "exit in ensure" => "begin; raise 'planned'; ensure; exit 4; end",
    "exit! in ensure" => "begin; exit 1; ensure; exit!(4); end",
    "exit that is rescued" => "begin; exit 1; rescue SystemExit => e; puts e.status; end; exit 2",
    "END" => "END { puts 1 }; at_exit { puts 2 }; exit 5",
    "a finalizer at the end" => "KEPT = Object.new; ObjectSpace.define_finalizer(KEPT, proc { puts 1 }); exit 5",
    "exit in a fiber" => "Fiber.new { exit 6 }.resume",
    "exit in an enumerator" => "Enumerator.new { |y| y << 1; exit 6 }.each { |x| puts x }",
    "a thread that raises" => "Thread.abort_on_exception = true; Thread.new { raise 'planned' }; sleep 20",
    "a thread that raises quietly" => "t = Thread.new { raise 'planned' }; t.report_on_exception = false; t.join",
    "exit while threads hold locks" => "m = Mutex.new; Thread.new { m.lock; sleep }; Thread.pass until m.locked?; " \
                                       "at_exit { puts m.try_lock }; exit 3",
    "threads with ensure" => "t = Thread.new { begin; sleep; ensure; puts 'ensured'; end }; " \
                             "Thread.pass until t.status == 'sleep'; exit 3",
    "a timeout" => "require 'timeout'; Timeout.timeout(0.05) { sleep }",
    "a timeout at exit" => "require 'timeout'; at_exit { Timeout.timeout(0.05) { sleep } rescue puts $!.class }",
    "a deadlock" => "Thread.new { Thread.stop }; Queue.new.pop",
    "overflow in C" => "a = []; a << a; def a.==(o); self == o; end; a == 1",
    "overflow in a fiber" => "def f(n); f(n + 1) + 1; end; Fiber.new { f(1) }.resume",
    "overflow that is rescued" => "def f(n); f(n + 1) + 1; end; begin; f(1); rescue SystemStackError; puts 1; end",
    "memory used up" => "Process.setrlimit(:AS, 900 << 20); a = []; " \
                        "begin; loop { a << 'x' * (50 << 20) }; rescue NoMemoryError; a.clear; puts 1; exit 7; end",
    "a string that is too long" => "begin; 'x' * (2**62); rescue ArgumentError, NoMemoryError; exit 8; end",
    "a signal at exit" => "at_exit { Process.kill(:TERM, $$); sleep 20 }; exit 3",
    "a signal in a trap" => "trap(:USR1) { Process.kill(:TERM, $$) }; Process.kill(:USR1, $$); sleep 20",
    "exit in a trap at exit" => "trap(:TERM) { exit 9 }; at_exit { Process.kill(:TERM, $$); sleep 20 }",
    "SignalException" => "raise SignalException, 'TERM'",
    "Interrupt" => "raise Interrupt, 'planned'",
    "SystemExit" => "raise SystemExit.new(11, 'planned')",
    "abort in a thread" => "Thread.new { abort 'planned' }.join",
    "Thread.exit of main" => "at_exit { puts 1 }; Thread.exit",
    "raise of main" => "Thread.new { Thread.main.raise 'planned' }; sleep 20",
    "exec in a thread" => "Thread.new { exec 'sh', '-c', 'exit 5' }.join; sleep 20",
    "fork in at_exit" => "at_exit { Process.wait(fork { puts 1; exit!(3) }); exit $?.exitstatus }",
    "a closed stderr" => "$stderr.close; raise 'planned'",
    "a broken pipe" => "r, w = IO.pipe; r.close; w.write 'x'",
    "stdin closed" => "$stdin.close; exit 4",
    "exit with a long name" => "exit(true)", "exit false" => "exit(false)", "status 256" => "exit(256 + 7)",
    "a syntax error" => "eval('def (')", "a library that is missing" => "require 'no/such/library'",
    "raise in BEGIN of a child" => "puts system(RbConfig.ruby, '-e', 'BEGIN { raise %q(planned) }', err: '/dev/null')"
  }.freeze

  # Runs each of the programs that are named on its command line, and tells what they said and how they ended.
  DRIVER = <<~'RUBY'
    require "json"
    require "open3"
    ends = ARGV.map do |file|
      out, err, status = Open3.capture3(RbConfig.ruby, "--disable-gems", file)
      text = (out + err).scrub.gsub(/\d+ levels|0x\h+|#<Thread:.*|\* .*\n|   rb_thread_t:.*\n|native:\d+/, "")
      text = text.sub(/^-- Control frame information.*/m, "") # Ruby's report of a crash lists all that is loaded
      [File.basename(file), [text, status.exitstatus, status.termsig]]
    end
    puts JSON.generate(ends.to_h)
  RUBY

  def test_ends_inside_of_ends
    compare(ENDS, [])
  end

  def test_fatal_signals
    known = Signal.list
    gentle = (GENTLE & known.keys).map { |name| ["signal #{name}", "Process.kill(:#{name}, $$); sleep 3"] }.to_h
    hard = (HARD & known.keys).map { |name| ["hard #{name}", "Process.kill(:#{name}, $$); sleep 3"] }.to_h
    compare(gentle.merge(hard), hard.keys)
  end

  private

  # unseen: names of programs that cannot act any more.
  def compare(ends, unseen)
    files = ends.map do |name, code|
      File.join(@directory, "#{name.gsub(/\W/, "_")}.rb").tap { |file| File.write(file, "#{WORK}#{code}\n") }
    end
    profile = File.join(@directory, "ends.pb.gz")
    plain, followed = [[], [SONDE, "run", "--quiet", "-o", profile, "--", RUBY]].map do |before|
      Thread.new do
        out, err, status = Open3.capture3(clean_environment, RUBY, *before, "-e", DRIVER, *files, chdir: @directory)
        assert status.success?, err
        JSON.parse(out)
      end
    end.map(&:value)
    plain.each { |name, ending| assert_equal ending, followed[name], name }
    seen = PprofDecoder.read(profile).samples.flat_map { |sample| sample.frames.map(&:file) }.uniq
    unseen = unseen.map { |name| "#{name.gsub(/\W/, "_")}.rb" }
    assert_empty(files.reject { |file| seen.include?(file) || unseen.include?(File.basename(file)) })
  end
end
