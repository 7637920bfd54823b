# frozen_string_literal: true

require "test_helper"
require "sonde/cli"
require "sonde/cli/gathering"
require "sonde/cli/run_directory"

# Profiles of many processes, added up.
class GatheringTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
    @directory = Sonde::CLI::RunDirectory.new([])
    @gathering = Sonde::CLI::Gathering.new(@directory)
    @bytes = Sonde.profile { burn(0.05) }.to_pprof
    @cpu = Sonde::Profile.from_pprof(@bytes).totals["cpu-time"]
  end

  def teardown
    @directory&.remove
    refute_path_exists @directory.path if @directory
  end

  def test_nothing_is_nothing
    assert_nil @gathering.finish
    assert_equal 0, @gathering.processes
  end

  def test_parts_of_one_process_and_of_several
    write("1-100.pb", "1-200.pb")
    profile = @gathering.finish
    assert_equal [2 * @cpu, 1], [profile.totals["cpu-time"], @gathering.processes]
    several = Sonde::CLI::Gathering.new(@directory)
    write("1-100.pb", "2-100.pb", "2-200.pb")
    assert_equal 3 * @cpu, several.finish.totals["cpu-time"]
    assert_equal 2, several.processes
  end

  def test_the_cpu_time_of_writing_a_part_is_added
    write("1-100-7000000.pb", "2-100-0.pb")
    profile = @gathering.finish
    assert_equal 2 * @cpu + 7_000_000, profile.totals["cpu-time"]
  end

  def test_a_damaged_part_is_left_out
    write("1-100.pb", "2-100.pb")
    File.write(File.join(@directory.path, "3-100.pb"), "no profile")
    assert_equal 2 * @cpu, @gathering.finish.totals["cpu-time"]
    assert_equal [2, 1], [@gathering.processes, @gathering.damaged]
  end

  def test_many_are_added_up_while_the_program_runs
    many = Sonde::CLI::Gathering::MANY + 50
    @gathering.begin
    many.times { |i| write("#{i}-100.pb") }
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    sleep 0.05 until @directory.parts.size < 50 || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
    write("#{many}-100.pb")
    profile = @gathering.finish
    assert_equal (many + 1) * @cpu, profile.totals["cpu-time"]
    assert_equal many + 1, @gathering.processes
    assert_empty @directory.parts
  end

  private

  def write(*names)
    names.each do |name|
      path = File.join(@directory.path, name)
      File.binwrite("#{path}.part", @bytes)
      File.rename("#{path}.part", path)
    end
  end
end
