# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"
require "support/pprof_decoder"
require "support/recording_server"

# Whole processes that report into a directory: every way of ending, and forks.
class ReportingTest < Minitest::Test
  include TestHelper

  BURN = <<~RUBY
    require "sonde"
    def burn(seconds)
      finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
      1 while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
    end
    def job_1; burn(0.1); end
    def job_2; burn(0.1); end
  RUBY

  def setup
    need_extension
    @directory = Dir.mktmpdir("sonde-reporting")
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  def run_ruby(code, variables = {})
    environment = clean_environment.merge("SONDE_EXPORT" => "file=#{@directory}").merge(variables)
    out, status = Open3.capture2e(environment, RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", BURN + code)
    @status = status
    out
  end

  ROOT = TestHelper::ROOT

  # By pid.
  def profiles
    Dir.children(@directory).group_by { |name| name[/-(\d+)-\d+\.pb/, 1] }.transform_values do |names|
      names.map { |name| PprofDecoder.read(File.join(@directory, name)) }
    end
  end

  def seconds_in(profiles, method)
    profiles.sum do |profile|
      profile.total("cpu-time") { |sample| sample.frames.any? { |frame| frame.name.end_with?(method) } }
    end / 1e9
  end

  # Methods of this program are "Object#job_1"; before 3.4 without the class.
  def assert_job(profiles, name)
    assert_in_delta 0.1, seconds_in(profiles, name), 0.06, name
  end

  {
    "at its end" => "", "exit" => "exit 3", "an exception" => "raise 'planned'", "abort" => "abort 'planned'",
    "exit!" => "exit! 3", "SIGTERM" => "Process.kill('TERM', Process.pid); sleep 5",
    "Process.exit! in a trap" => "trap('USR1') { Process.exit!(0) }; Process.kill('USR1', Process.pid); sleep 5"
  }.each do |how, code|
    define_method("test_a_process_that_ends_by_#{how.gsub(/\W+/, "_")}_reports") do
      out = run_ruby("Sonde.start; job_1; #{code}")
      refute_match(/sonde:/, out)
      assert_equal 1, profiles.size, out
      assert_job(profiles.values.first, "job_1")
    end
  end

  def test_exec_reports_what_was_before_it
    assert_match(/after/, run_ruby("Sonde.start; job_1; exec('echo', 'after')"))
    assert_job(profiles.values.first, "job_1")
  end

  def test_after_an_exec_that_failed_reporting_goes_on
    run_ruby("Sonde.start; job_1; begin; exec('/no/such/program'); rescue SystemCallError; end; job_2")
    assert_job(profiles.values.first, "job_1")
    assert_job(profiles.values.first, "job_2")
    assert_equal 2, profiles.values.first.size
  end

  def test_a_child_reports_its_own_work_and_nothing_of_its_parents
    run_ruby("Sonde.start; job_1; pid = fork { job_2 }; Process.wait(pid); puts pid")
    assert_equal 2, profiles.size
    parent = profiles.values.find { |each| seconds_in(each, "job_1") > 0.01 }
    child = (profiles.values - [parent]).first
    assert_in_delta 0.0, seconds_in(parent, "job_2"), 0.001
    assert_in_delta 0.0, seconds_in(child, "job_1"), 0.001
    assert_job(child, "job_2")
  end

  # As Resque does it: a fork for each job, which ends by exit!.
  def test_a_hundred_children_that_end_by_exit
    run_ruby(<<~RUBY)
      Sonde.start(interval: 0.5)
      100.times do |i|
        Process.wait(fork do
          finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.02
          1 while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
          exit!(0)
        end)
      end
    RUBY
    parent = profiles.keys.min_by(&:to_i)
    children = profiles.reject { |pid, _| pid == parent }
    assert_equal 100, children.size
    children.each_value do |of_child|
      # What the child did since its fork, and the little that it takes to begin and to end.
      assert_operator of_child.sum { |profile| profile.total("cpu-time") }, :>=, 19_000_000
    end
  end

  # As test suites do that stop the time.
  def test_clocks_that_the_program_replaces
    out = run_ruby(<<~'RUBY')
      Process.singleton_class.prepend(Module.new { def clock_gettime(*); 0; end })
      Time.singleton_class.prepend(Module.new { def now; at(0); end })
      Kernel.prepend(Module.new { def sleep(*); raise "who sleeps?"; end })
      Sonde.start(interval: 0.2)
      100_000_000.times { |i| break if i % 1000 == 0 && Sonde.status[:exports].first[:delivered] >= 2 }
      puts "delivered" if Sonde.status[:exports].first[:delivered] >= 2
    RUBY
    assert_equal "delivered\n", out
    assert_operator Dir.children(@directory).size, :>=, 3
  end

  def test_stop_delivers_and_answers_and_what_comes_after_is_in_no_profile
    out = run_ruby("Sonde.start; job_1; p Sonde.stop.class, Sonde.running?; job_2; p Sonde.start; Sonde.stop")
    assert_match(/Sonde::Profile\nfalse\ntrue/, out)
    assert_job(profiles.values.first, "job_1")
    assert_in_delta 0.0, seconds_in(profiles.values.first, "job_2"), 0.001
  end

  # Nobody sees half a file, and the program's own files are left alone.
  def test_a_process_that_is_killed_between_writing_and_renaming
    run_ruby(<<~'RUBY')
      Sonde.start
      File.singleton_class.prepend(Module.new { def rename(*); Process.kill(:KILL, Process.pid); end })
      job_1
    RUBY
    assert_equal Signal.list["KILL"], @status.termsig
    assert_equal 1, Dir.children(@directory).size
    assert_match(/\A\.sonde-.*\.part\z/, Dir.children(@directory).first)
  end

  def test_a_full_disk
    small = "#{@directory}/small"
    Dir.mkdir(small)
    mount = "mount -t tmpfs -o size=4k tmpfs #{small}"
    can_mount = system("unshare", "-m", "sh", "-c", mount, %i[out err] => File::NULL)
    skip "no file system can be mounted here" unless can_mount

    code = "#{BURN}Sonde.start(interval: 0.1); 3.times { job_1 }; Sonde.stop; p Dir.children(ARGV[0])"
    environment = clean_environment.merge("SONDE_EXPORT" => "file=#{small}")
    out, status = Open3.capture2e(environment, "unshare", "-m", "sh", "-c",
                                  "#{mount} && dd if=/dev/zero of=#{small}/big bs=4k count=1 2>/dev/null; exec \"$@\"",
                                  "sh", RbConfig.ruby, "-w", "-I#{ROOT}/lib", "-e", code, small)
    assert status.success?, out
    assert_match(/No space left on device/, out)
    assert_match(/\["big"\]$/, out)
  end

  # Each kind of trouble: the program does its work, ends with its own status and in time, and says once what was lost.
  {
    "nobody listens" => ["otlp=http://127.0.0.1:1", /profiles for otlp could not be delivered/],
    "no such host" => ["pyroscope=http://no-such-host.invalid", /profiles for pyroscope could not be delivered/],
    "a socket that is not there" => ["datadog=unix:///no/such/socket", /profiles for datadog could not be delivered/]
  }.each do |how, (export, said)|
    define_method("test_where_#{how.tr(" ", "_")}_the_program_does_not_notice") do
      out = run_ruby("Sonde.start(interval: 0.1, exit_timeout: 2); 3.times { job_1 }; puts 'done'; exit 7",
                     { "SONDE_EXPORT" => export })
      assert_match(/^done$/, out)
      assert_equal 7, @status.exitstatus
      assert_match(said, out)
      assert_equal 1, out.scan("sonde:").size, out
    end
  end

  def test_a_backend_that_never_answers_delays_the_end_by_no_more_than_the_timeout
    RecordingServer.open do |server|
      20.times { server.answers << :hang }
      out = run_ruby("Sonde.start(exit_timeout: 0.5); job_1; $t = Process.clock_gettime(1); " \
                     "Sonde.stop; puts Process.clock_gettime(1) - $t", { "SONDE_EXPORT" => "otlp=#{server.url}" })
      assert_includes 0.4..5.0, out[/^\d+\.\d+$/].to_f, out
      assert_match(/profiles for otlp could not be delivered before the end/, out)
    end
  end

  def test_of_many_threads_that_start_one_begins
    out = run_ruby(<<~'RUBY')
      started = Array.new(8) { Thread.new { Sonde.start } }.map(&:value).count(true)
      p [started, ObjectSpace.each_object(Sonde::Reporter).count(&:running?)]
      Sonde.stop
      p ObjectSpace.each_object(Sonde::Reporter).count(&:running?)
    RUBY
    assert_equal "[1, 1]\n0\n", out # and no warning of Ruby's that files load each other
  end

  def test_a_start_in_a_signal_handler_says_what_is_not_loaded
    out = run_ruby("trap('USR1') { p Sonde.start }; Process.kill('USR1', Process.pid); sleep 0.1; p Sonde.start")
    assert_match(/\Afalse\ntrue\n\z/, out.sub(/^Sonde cannot profile now: the exporter file cannot be loaded .*\n/, ""))
  end

  def test_a_refusal_is_said_once_with_its_reason
    RecordingServer.open do |server|
      20.times { server.answers << [401, {}, "no such tenant"] }
      out = run_ruby("Sonde.start(interval: 0.1); 10.times { job_1 }", { "SONDE_EXPORT" => "otlp=#{server.url}" })
      assert_equal 1, out.scan("sonde:").size, out
      assert_match(/refused: #{server.url} answered 401: no such tenant/, out)
      assert_operator server.requests.size, :>=, 3
    end
  end

  def test_a_directory_that_cannot_be_is_said_once_and_harms_nobody
    out = run_ruby("Sonde.start(interval: 0.1); 5.times { job_1 }; Sonde.stop; " \
                     "p Sonde.status[:exports].first[:dropped][:refused]",
                   { "SONDE_EXPORT" => "file=/dev/null/x" })
    assert @status.success?
    assert_equal 1, out.scan("sonde:").size, out
    assert_match(/profiles for file were refused: .*Not a directory|File exists/, out)
    assert_operator out[/^\d+$/].to_i, :>=, 1
  end
end
