# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"
require "fileutils"
require "json"
require "open3"
require "rbconfig"
require "timeout"
require "tmpdir"

# `sonde run` on programs with children, and on programs that end in every way there is.
class ChildrenTest < Minitest::Test
  include TestHelper

  RUBY = RbConfig.ruby
  SONDE = File.join(ROOT, "exe/sonde")
  LIMIT = 240 # seconds; the machine may be busy

  # Each kind of work has a method of its own, so that the profile tells who did what.
  PRELUDE = <<~'RUBY'
    def burn(seconds)
      limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
    end
    def first(seconds = 0.2); burn(seconds); end
    def second(seconds = 0.2); burn(seconds); end
    def third(seconds = 0.2); burn(seconds); end
  RUBY

  def setup
    @directory = Dir.mktmpdir("sonde children")
    @file = File.join(@directory, "out.pb.gz")
    @temporary = File.join(@directory, "tmp")
    Dir.mkdir(@temporary)
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  # Forks --------------------------------------------------------------------------------------------------------------

  def test_a_tree_of_forks_comes_as_one_file_with_right_numbers_and_times
    out, err, status = profile(<<~'RUBY')
      $stdout.sync = true
      puts "#{Process.pid} first"
      first(0.4)
      children = Array.new(2) do
        fork do
          puts "#{Process.pid} second"
          second(0.4)
          Process.wait(fork { puts "#{Process.pid} third"; third(0.4); exit 3 })
          exit $?.exitstatus + 1
        end
      end
      exit children.sum { |pid| Process.wait2(pid)[1].exitstatus }
    RUBY
    assert_equal 8, status.exitstatus, err
    told = out.lines.map(&:split).to_h
    assert_equal 5, told.size
    assert_equal told.keys.sort, pids.sort
    told.each { |pid, method| assert_in_delta 0.4, cpu(method, pid), 0.04, method }
    assert_in_delta 2.0, %w[first second third].sum { |method| cpu(method) }, 0.2
    assert_match(/ s of 5 processes profiled: /, err)
    assert_nothing_left
  end

  def test_the_sum_of_cpu_time_is_what_the_kernel_says
    out, = profile(<<~'RUBY')
      main = Process.pid
      at_exit do # the last one of the program's
        times = Process.times
        puts times.utime + times.stime + times.cutime + times.cstime if Process.pid == main
      end
      # Where a child ends with exit, Ruby takes its objects down after everything else, unseen.
      8.times { Process.wait(fork { second(0.1); exit!(0) }) }
      first(0.4)
    RUBY
    kernel = Float(out)
    # The end of the main program comes after that.
    assert_includes (kernel * 0.98)..(kernel * 1.02 + 0.2), decoded.total("cpu-time") / 1e9
  end

  def test_a_hundred_jobs_in_a_fork_each
    out, = profile(<<~'RUBY')
      100.times { |i| Process.wait(fork { second(0.01); i.odd? ? exit!(0) : exit(0) }) }
      times = Process.times
      puts Process.pid, times.cutime + times.cstime
    RUBY
    main, of_children = out.split
    assert_equal 101, pids.size
    times = decoded.samples.select { |sample| sample.labels["pid"] }.group_by { |sample| sample.labels["pid"] }
                   .transform_values { |samples| samples.sum { |sample| sample.values["cpu-time"] } / 1e9 }
    times.delete(main)
    times.each_value { |seconds| assert_operator seconds, :>=, 0.01 }
    assert_operator times.values.sum, :<=, Float(of_children)
    # Of 1.0: a child has a sample or two, and what comes after the last has no stack.
    assert_operator cpu("second"), :>, 0.5
  end

  def test_forks_of_threads_of_forks_and_of_popen
    out, err, = profile(<<~'RUBY')
      pids = Array.new(4) { Thread.new { fork { second(0.1) } } }.map(&:value)
      io = IO.popen("-")
      (third; print "child"; exit) if io.nil?
      print io.read
      io.close
      print IO.popen("-") { |pipe| pipe ? pipe.read : (third; print "block") }
      Process.waitall
    RUBY
    assert_equal "childblock", out, err
    assert_equal 7, pids.size
    assert_in_delta 0.4, cpu("second"), 0.08
    assert_in_delta 0.4, cpu("third"), 0.06
  end

  def test_daemons_and_grandchildren_that_end_before_the_program
    profile(<<~'RUBY')
      reader, writer = IO.pipe
      fork do
        first
        Process.daemon(true, true)
        second
        fork { third }
        Process.waitall
        writer.puts "done"
      end
      writer.close
      Process.wait
      reader.read # to the end of the daemon, nearly
      sleep 0.2
    RUBY
    %w[first second third].each { |method| assert_in_delta 0.2, cpu(method), 0.04, method }
    assert_equal 4, pids.size
  end

  def test_a_child_that_outlives_the_program_is_named
    out, err, = profile(<<~'RUBY')
      first
      STDOUT.sync = true
      puts fork { STDIN.reopen("/dev/null"); STDOUT.reopen("/dev/null"); STDERR.reopen("/dev/null"); sleep }
    RUBY
    Process.kill("KILL", out.to_i)
    assert_match(/^sonde: process #{out.to_i} \(ruby #{@directory}.*\) goes on; it is not in the profile$/, err)
    assert_in_delta 0.2, cpu("first"), 0.04
  end

  def test_a_killed_child_is_named_as_lost
    out, err, = profile(<<~'RUBY')
      first
      reader, writer = IO.pipe
      pid = fork { second; writer.puts; sleep }
      reader.gets
      Process.kill(:KILL, pid)
      Process.wait
      puts pid
    RUBY
    assert_match(/^sonde: process #{out.to_i} \(ruby .*\) ended without a profile: killed\?$/, err)
    assert_in_delta 0.2, cpu("first"), 0.04
  end

  # Commands -----------------------------------------------------------------------------------------------------------

  def test_commands_by_the_hundred_and_rubies_among_them
    File.write(File.join(@directory, "child.rb"), "#{PRELUDE}\nthird(0.05)")
    profile("200.times { system('true') }; 8.times { `#{RUBY} child.rb` }; spawn('#{RUBY} child.rb'); Process.wait")
    assert_equal 10, pids.size
    assert_in_delta 0.45, cpu("third"), 0.05
  end

  def test_what_was_before_an_exec_and_what_is_after_it_have_the_same_number
    File.write(File.join(@directory, "next.rb"), "#{PRELUDE}\nthird")
    _, err, status = profile(<<~'RUBY')
      fork { second; exit!(2) }
      Process.wait
      first
      begin
        exec("/no/such/program")
      rescue Errno::ENOENT
        first
      end
      exec(RbConfig.ruby, "next.rb")
    RUBY
    assert status.success?, err
    assert_equal 2, pids.size
    own, = pids.select { |pid| cpu("first", pid).positive? }
    assert_in_delta 0.4, cpu("first", own), 0.04
    assert_in_delta 0.2, cpu("third", own), 0.04
    assert_in_delta 0.2, cpu("second"), 0.04
    assert_equal 0, cpu("second", own)
    assert_nothing_left
  end

  # Ends ---------------------------------------------------------------------------------------------------------------

  ENDS = {
    "exit" => "first(0.02); exit 3",
    "exit!" => "first(0.02); exit!(4)",
    "exit! in a handler" => "trap(:USR1) { exit!(6) }; first(0.02); Process.kill(:USR1, $$); sleep 5",
    "exit in a handler" => "trap(:USR1) { exit 6 }; first(0.02); Process.kill(:USR1, $$); sleep 5",
    "abort" => "first(0.02); abort 'x'",
    "an exception" => "def a; raise 'planned'; end; first(0.02); a",
    "TERM" => "first(0.02); Process.kill(:TERM, $$); sleep 5",
    "INT" => "first(0.02); Process.kill(:INT, $$); sleep 5",
    "HUP" => "first(0.02); Process.kill(:HUP, $$); sleep 5",
    "QUIT" => "first(0.02); Process.setrlimit(:CORE, 0); Process.kill(:QUIT, $$); sleep 5",
    "the order of at_exit" => "at_exit { puts 1 }; at_exit { puts 2; exit 7 }; trap(:EXIT) { puts 3 }; first(0.02)",
    "exit! at exit" => "at_exit { puts 1 }; at_exit { first(0.02); exit!(8) }",
    "exec at exit" => "at_exit { first(0.02); exec 'sh', '-c', 'exit 9' }",
    "a fork at exit" => "at_exit { Process.wait(fork { first(0.02); puts 1; exit 3 }); puts $?.exitstatus }",
    "threads that go on" => "Thread.new { loop { sleep 0.01 } }; Thread.new { loop { first } }; sleep 0.1; puts 1",
    "the main thread killed" => "first(0.02); Thread.new { Thread.main.kill }.join; sleep 5",
    "exit of a thread" => "first(0.02); Thread.new { exit 7 }.join",
    "a stack overflow" => "first(0.02); def f(n); f(n + 1) + 1; end; f(1)",
    "out of memory" => "first(0.02); raise NoMemoryError, 'planned'",
    "throw" => "first(0.02); throw :nowhere",
    "exec" => "first(0.02); exec 'sh', '-c', 'exit 5'",
    "an exec that fails" => "first(0.02); def a; exec '/no/such'; end; a",
    "an exec that fails in a child" => "Process.wait(fork { first(0.02); exec '/no/such' }); exit $?.exitstatus",
    "an exception in a child" => "Process.wait(fork { first(0.02); raise 'planned' }); exit $?.exitstatus",
    "a daemon" => "first(0.02); $stdout.sync = true; puts 1; Process.daemon(true); exit 3",
    "a closed output" => "first(0.02); $stdout.close; exit 2",
    "minitest" => <<~'RUBY'
      require "minitest/autorun"
      class ExampleTest < Minitest::Test
        def test_passes; first(0.02); assert true; end
        def test_fails; assert_equal 1, 2; end
      end
      Minitest.after_run { puts "after" }
      at_exit { puts "before" }
    RUBY
  }.freeze

  # Runs each of the programs that are named on its command line, and prints what they said and how they ended.
  DRIVER = <<~'RUBY'
    require "json"
    require "open3"
    ends = ARGV.map do |file|
      out, err, status = Open3.capture3(RbConfig.ruby, file, "--seed", "1")
      text = (out + err).gsub(/[\d.]+ runs?\/s, [\d.]+ assertions?\/s|Finished in [\d.]+s|\d+ levels/, "")
      [File.basename(file), [text, status.exitstatus, status.termsig]]
    end
    puts JSON.generate(ends.to_h)
  RUBY

  def test_every_end_is_the_same_and_its_profile_is_there
    files = ENDS.map do |name, code|
      File.join(@directory, "#{name.tr(" ", "_")}.rb").tap { |file| File.write(file, "#{PRELUDE}\n#{code}\n") }
    end
    plain, = Open3.capture2(clean_environment, RUBY, "-e", DRIVER, *files, chdir: @directory)
    followed, err, status = run_sonde(RUBY, "-e", DRIVER, *files)
    assert status.success?, err
    plain = JSON.parse(plain)
    followed = JSON.parse(followed)
    plain.each { |name, ending| assert_equal ending, followed[name], name }
    return unless Sonde.supported?

    PprofDecoder.read(@file).samples.flat_map { |sample| sample.frames.map(&:file) }.uniq.tap do |seen|
      assert_empty files.reject { |file| seen.include?(file) || File.basename(file) == "a_daemon.rb" }
    end
  end

  private

  # Runs code after the prelude; what it did can then be asked with {cpu} and {pids}.
  def profile(code)
    need_extension
    script = File.join(@directory, "program.rb")
    File.write(script, "#{PRELUDE}\n#{code}")
    run_sonde(RUBY, script)
  end

  def run_sonde(*command)
    Timeout.timeout(LIMIT) do
      Open3.capture3(clean_environment.merge("TMPDIR" => @temporary), RUBY, SONDE, "run", "-o", @file, "--", *command,
                     chdir: @directory)
    end
  end

  def decoded
    @decoded ||= PprofDecoder.read(@file)
  end

  def pids
    decoded.samples.map { |sample| sample.labels["pid"] }.compact.uniq
  end

  # Seconds of CPU below the method, in one process or in all.
  def cpu(method, pid = nil)
    decoded.total("cpu-time") do |sample|
      (pid.nil? || sample.labels["pid"] == pid) && sample.frames.any? { |frame| frame.name == "Object##{method}" }
    end / 1e9
  end

  def assert_nothing_left
    assert_empty Dir.children(@temporary)
  end
end
