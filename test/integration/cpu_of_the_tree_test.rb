# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require "support/pprof_decoder"

# The CPU time in a profile of `sonde run` is what the kernel counts for the processes, from their start to their end.
class CpuOfTheTreeTest < Minitest::Test
  include TestHelper

  SONDE = File.join(ROOT, "exe/sonde")
  BURN = "def burn(seconds) finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds; " \
         "nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish; end\n"
  TELL = "times = Process.times\nprint times.utime + times.stime + times.cutime + times.cstime\n"

  def setup
    need_extension
    @directory = Dir.mktmpdir("sonde cpu")
  end

  def teardown
    FileUtils.rm_rf(@directory) if @directory
  end

  def test_of_one_process
    kernel, profile = run_program("burn(1)\n#{TELL}")
    assert_same_cpu kernel, profile
    assert_operator seconds(profile, "(start of Ruby)"), :>, 0.01
  end

  def test_of_forks
    kernel, profile = run_program("3.times { fork { burn(1); exit!(0) } }; Process.waitall; burn(1)\n#{TELL}")
    assert_same_cpu kernel, profile
    assert_equal 4, profile.samples.map { |sample| sample.labels["pid"] }.compact.uniq.size
  end

  def test_of_rubies_that_it_starts
    File.write("#{@directory}/child.rb", "#{BURN}burn(1); exit!(0)\n")
    kernel, profile = run_program("2.times { spawn(RbConfig.ruby, 'child.rb') }; Process.waitall; burn(1)\n#{TELL}")
    assert_same_cpu kernel, profile
  end

  # Ruby then frees all objects, after everything that could be seen from inside.
  def test_of_ends_and_of_programs_that_are_not_ruby
    code = "x = Array.new(300_000, &:to_s); 3.times { fork { burn(0.2) } }; Process.waitall\n" \
           "system('gzip -c #{RbConfig.ruby} > out.gz'); burn(0.5); x.clear\n#{TELL}"
    kernel, profile = run_program(code)
    assert_same_cpu kernel, profile, 0.2 # its own end
    assert_operator seconds(profile, "(not profiled)"), :>, 0.02
  end

  # What came before an exec is not counted twice.
  def test_of_what_comes_before_and_after_an_exec
    File.write("#{@directory}/next.rb", "#{BURN}burn(1)\np ENV.key?('SONDE_RUN_COUNTED')\n#{TELL}")
    said, profile = run_program("burn(1); (exec('/no/such') rescue 0); exec(RbConfig.ruby, 'next.rb')")
    ours, kernel = said.lines
    assert_equal "false\n", ours
    assert_same_cpu kernel, profile
  end

  # The time before the delay is not asked for.
  def test_with_a_delay
    _, profile = run_program("burn(0.1); sleep 2; burn(0.1)", "--delay", "1")
    assert_equal 0, seconds(profile, "(start of Ruby)") + seconds(profile, "(not profiled)")
  end

  private

  # What it printed, and the profile.
  def run_program(code, *options)
    file = "#{@directory}/out.pb.gz"
    File.write("#{@directory}/program.rb", "#{BURN}#{code}")
    out, err, status = Open3.capture3(clean_environment, RbConfig.ruby, SONDE, "run", "--quiet", "-o", file, *options,
                                      "--", RbConfig.ruby, "program.rb", chdir: @directory)
    assert status.success?, err
    [out, PprofDecoder.read(file)]
  end

  # The program asks the kernel just before its end; the writing of the profile and the end itself come after that.
  def assert_same_cpu(kernel, profile, rest = 0.1)
    known = Float(kernel)
    assert_includes (known * 0.99)..(known * 1.01 + rest), profile.total("cpu-time") / 1e9
  end

  def seconds(profile, frame)
    profile.total("cpu-time") { |sample| sample.frames.first.name == frame } / 1e9
  end
end
