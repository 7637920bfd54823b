# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"
require "fileutils"
require "open3"
require "pty"
require "rbconfig"
require "timeout"
require "tmpdir"

# `sonde run` on real programs: what it leaves alone, and what it writes.
class RunCliTest < Minitest::Test
  include TestHelper

  RUBY = RbConfig.ruby
  SONDE = File.join(ROOT, "exe/sonde")
  BURN = "t = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.3; " \
         "def burn(t); nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < t; end; burn(t)"

  def setup
    @directory = Dir.mktmpdir("sonde run")
    @file = File.join(@directory, "out.pb.gz")
    @temporary = File.join(@directory, "tmp")
    Dir.mkdir(@temporary)
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  # What passes through ------------------------------------------------------------------------------------------------

  def test_output_input_and_status_are_the_programs_own
    out, err, status = sonde("run", "--quiet", "-o", @file, "--", RUBY, "-e",
                             "print $stdin.read.upcase; warn 'w'; exit 7", stdin_data: "abc")
    assert_equal ["ABC", "w\n", 7], [out, err, status.exitstatus]
  end

  def test_every_kind_of_end_keeps_its_status
    {
      "" => 0, "exit 7" => 7, "exit!(3)" => 3, "raise 'planned'" => 1, "abort 'x'" => 1, "at_exit { exit 9 }" => 9,
      "$stdout.close" => 0, "Process.kill(:TERM, $$); sleep 3" => "TERM", "Process.kill(:INT, $$); sleep 3" => "INT",
      "Process.kill(:KILL, $$); sleep 3" => "KILL", "trap(:TERM) { exit 4 }; Process.kill(:TERM, $$); sleep 3" => 4,
      "exec 'sh', '-c', 'exit 5'" => 5, "Thread.new { exit 6 }.join" => 6, "sleep 0.2; print 1" => 0
    }.each do |code, expected|
      _, err, status = sonde("run", "-o", @file, "--", RUBY, "-e", code)
      assert_equal expected, ending(status), "#{code}: #{err}"
      refute_match(/\[BUG\]|NoMethodError|NameError/, err, code)
    end
  end

  def test_arguments_are_passed_as_they_are
    arguments = Array.new(300) { |i| "a  b \"#{i}\" $HOME *" }
    out, = sonde("run", "--quiet", "-o", @file, "--", RUBY, "-e", "print ARGV.inspect", *arguments)
    assert_equal arguments.inspect, out
  end

  def test_options_of_the_program_are_not_ours
    out, = sonde("run", "--quiet", "-o", @file, RUBY, "-e", "print ARGV.inspect", "--", "--quiet", "-o", "x")
    assert_equal %w[--quiet -o x].inspect, out
  end

  def test_nothing_is_written_before_the_end_and_nothing_to_stdout
    out, err, = sonde("run", "-o", @file, "--", RUBY, "-w", "-e", "$stderr.print 'first'; print 1")
    assert_equal "1", out
    assert_match(/\Afirst(sonde: |\z)/, err)
    out, err, = sonde("run", "--quiet", "-o", @file, "--", RUBY, "-w", "-e", "print 1")
    assert_equal ["1", ""], [out, err]
  end

  # bug log B40
  def test_rubies_started_by_the_program_notice_nothing
    script = File.join(@directory, "children.rb")
    File.write(script, <<~'RUBY')
      require "open3"
      require "rbconfig"
      ruby = RbConfig.ruby
      runs = {
        "a child Ruby" => [{}, [ruby, "-e", "print 1"], {}],
        "with -w" => [{}, [ruby, "-w", "-e", "print 1"], {}],
        "without gems" => [{}, [ruby, "--disable-gems", "-e", "print 1"], {}],
        "without anything" => [{}, [ruby, "--disable=all", "-e", "print 1"], {}],
        "in the C locale" => [{ "LC_ALL" => "C" }, [ruby, "-w", "-e", "print 1"], {}],
        "an empty environment" => [{ "PATH" => ENV["PATH"] }, [ruby, "-e", "print 1"], { unsetenv_others: true }],
        "RUBYOPT of its own" => [{ "RUBYOPT" => "#{ENV["RUBYOPT"]} -W0" }, [ruby, "-e", "print 1"], {}],
        "RUBYOPT taken away" => [{ "RUBYOPT" => nil, "RUBYLIB" => nil }, [ruby, "-e", "print 1"], {}],
        "our variables taken away" => [{ "SONDE_RUN_DIRECTORY" => nil }, [ruby, "-e", "print 1"], {}],
        "our variables spoiled" => [{ "SONDE_RUN_DIRECTORY" => "/none", "SONDE_RUN_RATE" => "x" },
                                    [ruby, "-e", "print 1"], {}],
        "from another directory" => [{}, [ruby, "-e", "print 1"], { chdir: "/" }],
        "through a shell" => [{}, ["sh", "-c", "exec \"$0\" -e 'print 1'", ruby], {}],
        "reading its program" => [{}, [ruby], { stdin_data: "print 1" }],
        "libraries" => [{}, [ruby, "-rset", "-rjson", "-e", "print 1"], {}],
        "another program" => [{}, ["sh", "-c", "printf 1"], {}]
      }
      bad = runs.map do |what, (env, cmd, opts)|
        out, err, st = Open3.capture3(env, *cmd, **opts)
        next if st.success? && out == "1" && err.empty?

        "#{what}: status #{st.exitstatus}, out #{out.inspect}, err #{err[0, 300].inspect}"
      end.compact
      puts bad.empty? ? "OK" : bad
    RUBY
    [SONDE, copy_of_the_gem("a path with é and spaces")].each do |program|
      out, err, = sonde("run", "--quiet", "-o", @file, "--", RUBY, script, program: program)
      assert_equal ["OK\n", ""], [out, err], program
    end
  end

  def test_the_users_own_rubyopt_is_kept
    out, = sonde("run", "--quiet", "-o", @file, "--", RUBY, "-e", "print defined?(JSON).inspect, $VERBOSE.inspect",
                 environment: { "RUBYOPT" => "-rjson -W0" })
    assert_equal '"constant"nil', out
  end

  def test_the_profiled_program_has_no_library_more_than_without
    code = "print $LOADED_FEATURES.reject { |path| path =~ /sonde/ }.size"
    alone, = Open3.capture2(clean_environment, RUBY, "-e", code)
    profiled, = sonde("run", "--quiet", "-o", @file, "--", RUBY, "-e", code)
    assert_equal alone, profiled
  end

  def test_works_under_bundle_exec
    bundle = File.join(RbConfig::CONFIG["bindir"], "bundle")
    skip "no bundler" unless File.exist?(bundle)
    File.write(File.join(@directory, "Gemfile"), "")
    File.write(File.join(@directory, "x.rb"), "print defined?(Bundler).inspect; #{BURN}")
    environment = { "BUNDLE_GEMFILE" => File.join(@directory, "Gemfile"), "HOME" => @directory }
    out, err, status = sonde("run", "--quiet", "-o", @file, "--", RUBY, bundle, "exec", "ruby", "x.rb",
                             environment: environment)
    assert_equal ['"constant"', "", 0], [out, err, status.exitstatus]
    return unless Sonde.supported?

    assert_includes names(@file), "Object#burn"
  end

  # bug log B39
  def test_places_that_cannot_be_written_are_no_reason_not_to_run
    {
      "working directory" => [{}, { chdir: "/proc/self" }],
      "no HOME" => [{ "HOME" => nil }, {}],
      "TMPDIR" => [{ "TMPDIR" => "/proc/self/none", "TMP" => nil }, {}],
      "all of them" => [{ "HOME" => "/proc/self", "TMPDIR" => "/proc/none" }, { chdir: "/proc/self" }]
    }.each do |what, (environment, options)|
      out, err, status = sonde("run", "--", RUBY, "-e", "print 1; exit 5", environment: environment, **options)
      assert_equal ["1", 5], [out, status.exitstatus], "#{what}: #{err}"
      refute_match(/Error/, err)
      saved = err[/saved as (\S+)/, 1]
      FileUtils.rm_f(File.expand_path(saved, options.fetch(:chdir, @directory))) if saved
    end
  end

  # What is refused ----------------------------------------------------------------------------------------------------

  def test_a_missing_command_is_127_and_one_that_cannot_be_run_126
    _, err, status = sonde("run", "--", "no-such-command-here")
    assert_equal [127, "sonde: cannot run no-such-command-here: No such file or directory\n"], [status.exitstatus, err]
    File.write(File.join(@directory, "text"), "x")
    _, err, status = sonde("run", "--", "./text")
    assert_equal [126, "sonde: cannot run ./text: Permission denied\n"], [status.exitstatus, err]
    assert_equal %w[text tmp], Dir.children(@directory).sort
  end

  def test_an_output_that_cannot_be_written_is_said_before_anything_runs
    ["/proc/none.pb.gz", "#{@directory}/none/x.pb.gz", @directory].each do |file|
      out, err, status = sonde("run", "-o", file, "--", RUBY, "-e", "print 1")
      assert_equal ["", 2], [out, status.exitstatus]
      assert_match(/\Asonde: cannot write .*; nothing was run\n\z/, err)
    end
  end

  def test_wrong_options_name_what_is_allowed
    {
      [] => /no command given/,
      %w[--rate 0 ls] => /rate: 0\.0 \(allowed: 1 to 1000/, %w[--rate x ls] => /invalid argument: --rate x/,
      %w[--modes cpu,gpu ls] => /modes: \[:cpu, :gpu\] \(allowed: one or more of :cpu, :wall, :alloc, :heap\)/,
      %w[--duration -1 ls] => /duration: -1\.0 \(allowed: more than 0/, %w[--nope ls] => /invalid option: --nope/
    }.each do |arguments, message|
      out, err, status = sonde("run", *arguments)
      assert_equal ["", 2], [out, status.exitstatus]
      assert_match message, err
      assert_match(/^usage: sonde run/, err)
    end
    _, err, status = sonde("nope")
    assert_equal [2, "sonde: unknown command nope (there are: run, top, doctor, version, help)\n"],
                 [status.exitstatus, err]
  end

  def test_help_and_version
    assert_match(/^  run +run a program/, sonde("help").first)
    assert_match(/--duration S/, sonde("help", "run").first)
    assert_match(/--duration S/, sonde("run", "--help").first)
    assert_match(/\Asonde #{Sonde::VERSION} /, sonde("--version").first)
  end

  # Signals ------------------------------------------------------------------------------------------------------------

  COUNTER = <<~'RUBY'
    got = Queue.new
    %w[INT TERM USR1 HUP QUIT].each { |signal| trap(signal) { got << signal } }
    $stdout.sync = true
    puts "ready"
    sleep 0.01 while got.empty?
    puts got.pop
    sleep 0.5
    puts got.pop until got.empty?
    exit 3
  RUBY

  def test_a_signal_to_sonde_alone_reaches_the_program_once
    %w[INT TERM USR1 HUP QUIT].each do |signal|
      output, status = with_program(COUNTER) { |pid| Process.kill(signal, pid) }
      assert_equal ["#{signal}\n", 3], [output, status.exitstatus], signal
    end
  end

  def test_a_signal_to_the_whole_group_reaches_the_program_once
    %w[INT TERM USR1 HUP QUIT].each do |signal|
      output, status = with_program(COUNTER) { |pid| Process.kill(signal, -Process.getpgid(pid)) }
      assert_equal ["#{signal}\n", 3], [output, status.exitstatus], signal
    end
  end

  def test_ctrl_c_on_a_terminal_reaches_the_program_once
    output = +""
    status = nil
    command = [RUBY, SONDE, "run", "--quiet", "-o", @file, "--", RUBY, "-e", COUNTER]
    PTY.spawn(clean_environment, *command) do |reader, writer, pid|
      Timeout.timeout(20) do
        output << reader.readpartial(100) until output.include?("ready")
        writer.write("\x03")
        begin
          loop { output << reader.readpartial(100) }
        rescue EOFError, Errno::EIO
          nil # it has ended
        end
        status = Process.wait2(pid).last
      end
    end
    assert_equal 1, output.scan("INT").size, output
    assert_equal 3, status.exitstatus
  end

  def test_nohup_is_respected
    code = "trap('HUP', 'IGNORE'); exec(*ARGV)"
    program = "$stdout.sync = true; puts 'ready'; sleep 1; puts 'alive'"
    command = [RUBY, SONDE, "run", "--quiet", "-o", @file, "--", RUBY, "-e", program]
    IO.popen([clean_environment, RUBY, "-e", code, *command]) do |io|
      assert_equal "ready\n", io.gets
      Process.kill("HUP", io.pid)
      assert_equal "alive\n", io.gets
    end
  end

  # What is written ----------------------------------------------------------------------------------------------------

  def test_a_profile_of_the_program_is_saved_and_summed_up
    need_extension
    _, err, status = sonde("run", "-o", @file, "--", RUBY, "-e", BURN)
    assert_equal 0, status.exitstatus
    profile = PprofDecoder.read(@file)
    assert_includes profile.types, "cpu-time"
    assert_in_delta 0.35, profile.total("cpu-time") / 1e9, 0.25
    assert_match(/^sonde: \d+\.\d\d s profiled: cpu-time .*, wall-time /, err)
    assert_match(/Object#burn/, err)
    assert_match(/^sonde: saved as #{Regexp.escape(@file)} /, err)
    assert_equal ["out.pb.gz", "tmp"], Dir.children(@directory).sort
    assert_empty Dir.children(@temporary)
  end

  def test_the_default_name_is_of_the_command_and_in_the_working_directory
    need_extension
    _, err, = sonde("run", "--", RUBY, "-e", BURN)
    file = err[/saved as (\S+)/, 1]
    assert_match(/\Asonde-ruby[\d.]*-\d+\.pb\.gz\z/, file)
    assert File.file?(File.join(@directory, file))
  end

  def test_programs_too_short_to_be_sampled_give_a_valid_profile
    need_extension
    ["", "sleep 0.3", "print 1"].each do |code|
      FileUtils.rm_f(@file)
      _, err, status = sonde("run", "-o", @file, "--", RUBY, "-e", code)
      assert status.success?, err
      PprofDecoder.read(@file)
    end
  end

  def test_the_profile_is_written_however_the_program_ends
    need_extension
    ["raise 'planned'", "exit 4", "abort 'x'", "at_exit { exit 9 }",
     "Process.kill(:TERM, $$); sleep 3", "Process.kill(:INT, $$); sleep 3",
     "Thread.new { exit 6 }.join", "Thread.main.raise 'x'", "throw :nowhere"].each do |code|
      FileUtils.rm_f(@file)
      _, err, = sonde("run", "-o", @file, "--", RUBY, "-e", "#{BURN}; #{code}")
      assert File.exist?(@file), "#{code}: #{err}"
      assert_operator PprofDecoder.read(@file).total("cpu-time"), :>, 200_000_000, code
    end
  end

  def test_the_profile_is_written_when_a_signal_ends_the_program
    need_extension
    program = "$stdout.sync = true; #{BURN}; puts 'ready'; sleep 20"
    %w[INT TERM].each do |signal|
      [false, true].each do |group|
        FileUtils.rm_f(@file)
        _, status = with_program(program) { |pid| Process.kill(signal, group ? -Process.getpgid(pid) : pid) }
        assert_equal signal, ending(status)
        assert_operator PprofDecoder.read(@file).total("cpu-time"), :>, 200_000_000
      end
    end
  end

  def test_what_other_at_exit_blocks_do_is_profiled
    need_extension
    sonde("run", "-o", @file, "--", RUBY, "-e", "at_exit { #{BURN} }")
    assert_includes names(@file), "Object#burn"
  end

  def test_several_ruby_processes_come_as_one_file_with_their_numbers
    need_extension
    code = "2.times { system(#{RUBY.dump}, '-e', #{BURN.dump}) }; #{BURN}"
    _, err, = sonde("run", "-o", @file, "--", RUBY, "-e", code)
    profile = PprofDecoder.read(@file)
    nobodys, pids = profile.samples.partition { |sample| sample.labels["pid"].nil? }
    assert_equal ["(not profiled)"], nobodys.flat_map(&:frames).map(&:name)
    assert_equal 3, pids.map { |sample| sample.labels["pid"] }.uniq.size
    assert_match(/s of 3 processes profiled/, err)
    assert_operator profile.total("cpu-time"), :>, 700_000_000
  end

  def test_a_forked_child_does_not_write_its_parents_profile
    need_extension
    sonde("run", "-o", @file, "--", RUBY, "-e",
          "#{BURN}; Process.wait(fork { exit }); Process.daemon(true) if fork.nil?; Process.wait")
    assert_operator PprofDecoder.read(@file).total("cpu-time"), :<, 700_000_000
  end

  def test_duration_ends_the_profile_and_not_the_program
    need_extension
    out, = sonde("run", "--duration", "0.4", "-o", @file, "--", RUBY, "-e", "sleep 1.5; print 1")
    assert_equal "1", out
    assert_in_delta 0.4, PprofDecoder.read(@file).duration_nanos / 1e9, 0.3
  end

  def test_delay_begins_later_and_a_program_that_ends_before_is_said
    need_extension
    sonde("run", "--delay", "0.5", "-o", @file, "--", RUBY, "-e", "sleep 1.2")
    assert_in_delta 0.7, PprofDecoder.read(@file).duration_nanos / 1e9, 0.4
    FileUtils.rm_f(@file)
    _, err, status = sonde("run", "--delay", "30", "-o", @file, "--", RUBY, "-e", "exit 4")
    assert_equal [4, "sonde: nothing was profiled: the program ended before the delay of 30.0 s was over\n"],
                 [status.exitstatus, err]
    refute File.exist?(@file)
  end

  def test_only_the_modes_that_were_asked_for
    need_extension
    sonde("run", "--modes", "wall", "-o", @file, "--", RUBY, "-e", "sleep 0.2")
    assert_includes PprofDecoder.read(@file).types, "wall-time"
    refute_includes PprofDecoder.read(@file).types, "cpu-time"
  end

  def test_a_program_that_is_not_ruby_is_said_in_one_line
    _, err, status = sonde("run", "-o", @file, "--", "sh", "-c", "exit 3")
    assert_equal 3, status.exitstatus
    assert_match(/\Asonde: nothing was profiled: [^\n]+\n\z/, err)
    refute File.exist?(@file)
  end

  def test_a_killed_program_is_said_in_one_line
    need_extension
    _, err, status = sonde("run", "-o", @file, "--", RUBY, "-e", "Process.kill(:KILL, $$); sleep 3")
    assert_equal ["KILL", "sonde: nothing was profiled: SIGKILL ended the program at once\n"], [ending(status), err]
  end

  def test_an_output_that_becomes_unwritable_is_saved_elsewhere
    need_extension
    target = File.join(@directory, "gone")
    Dir.mkdir(target)
    _, err, status = sonde("run", "-o", "#{target}/x.pb.gz", "--", RUBY, "-e", "Dir.rmdir(#{target.dump}); exit 4")
    assert_equal 4, status.exitstatus
    elsewhere = err[/; saved as (.*)$/, 1]
    assert elsewhere, err
    PprofDecoder.read(elsewhere)
  end

  def test_a_gem_whose_path_has_a_space_profiles_too
    need_extension
    program = copy_of_the_gem("with a space")
    _, err, = sonde("run", "-o", @file, "--", RUBY, "-e", BURN, program: program)
    assert File.exist?(@file), err
    assert_includes names(@file), "Object#burn"
  end

  # sonde top and doctor
  # --------------------------------------------------------------------------------------------------

  def test_top_shows_the_hottest_methods
    need_extension
    sonde("run", "-o", @file, "--", RUBY, "-e", BURN)
    out, err, status = sonde("top", @file)
    assert_equal ["", true], [err, status.success?]
    assert_match(/cpu-time .*wall-time/, out.lines.first)
    assert_match(/% +.*Object#burn/, out)
    out, = sonde("top", "--by", "wall-time", "--cumulative", "--limit", "1", @file, @file)
    assert_equal 3, out.lines.size
    _, err, status = sonde("top", "--by", "colour", @file)
    assert_equal 1, status.exitstatus
    assert_match(/\Asonde: there is no colour in it \(there is: cpu-time/, err)
  end

  def test_top_refuses_what_is_no_profile
    need_extension
    File.write(File.join(@directory, "x"), "no profile at all")
    _, err, status = sonde("top", "x")
    assert_equal 1, status.exitstatus
    assert_match(/\Asonde: x: .+\n\z/, err)
    _, err, status = sonde("top", "none")
    assert_equal 1, status.exitstatus
    assert_match(/\Asonde: No such file or directory/, err)
  end

  def test_top_ends_quietly_when_nobody_reads
    need_extension
    sonde("run", "-o", @file, "--", RUBY, "-e", BURN)
    _, err, = Open3.capture3(clean_environment, "sh", "-c", "'#{RUBY}' '#{SONDE}' top '#{@file}' | true")
    assert_equal "", err
  end

  def test_doctor_says_whether_it_works
    out, _, status = sonde("doctor")
    assert_equal Sonde.supported? ? 0 : 1, status.exitstatus
    assert_match(/^  version +ruby/, out)
    assert_match(/^  loaded +#{Sonde.supported? ? "yes" : "no: "}/, out)
    assert_match(/^  tried on this Ruby +(yes$|untested: )/, out) if Sonde.supported?
  end

  private

  def sonde(*arguments, program: SONDE, environment: {}, **options)
    environment = clean_environment.merge("TMPDIR" => @temporary).merge(environment)
    Timeout.timeout(60) do
      Open3.capture3(environment, RUBY, program, *arguments, **{ chdir: @directory }.merge(options))
    end
  end

  # Runs code below `sonde run`, in a process group of their own; when it has said "ready" the block gets the number of
  # the sonde process.
  def with_program(code)
    arguments = [clean_environment, RUBY, SONDE, "run", "--quiet", "-o", @file, "--", RUBY, "-e", code]
    reader, writer = IO.pipe
    pid = Process.spawn(*arguments, out: writer, err: File::NULL, pgroup: true)
    writer.close
    Timeout.timeout(30) do
      assert_equal "ready\n", reader.gets
      yield pid
      output = reader.read
      [output, Process.wait2(pid).last]
    end
  ensure
    reader.close
  end

  def ending(status)
    status.signaled? ? Signal.signame(status.termsig) : status.exitstatus
  end

  def names(file)
    PprofDecoder.read(file).samples.flat_map { |sample| sample.frames.map(&:name) }.uniq
  end

  def copy_of_the_gem(name)
    target = File.join(@directory, name)
    FileUtils.mkdir_p(target)
    FileUtils.cp_r([File.join(ROOT, "lib"), File.join(ROOT, "exe")], target)
    File.join(target, "exe/sonde")
  end
end
