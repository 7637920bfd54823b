# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "sonde/export/file"

class ExportFileTest < Minitest::Test
  Flushed = Struct.new(:finish, :number, :pprof)

  def setup
    @directory = Dir.mktmpdir("sonde-export")
  end

  def teardown
    FileUtils.chmod_R(0o700, @directory) if File.exist?(@directory)
    FileUtils.rm_rf(@directory)
  end

  def exporter(variables = {}, target = @directory)
    Sonde::Export::File.new(Sonde::Report::Environment.new(variables), target)
  end

  def deliver(exporter, number = 0, time = Time.now)
    exporter.encode(Flushed.new(time, number, "bytes #{number}")).each { |part| exporter.deliver(part) }
  end

  def files
    Dir.children(@directory).sort
  end

  def test_the_name_says_what_and_when_and_who
    deliver(exporter({ "SONDE_SERVICE" => "my shop/../x", "SONDE_KEEP_SECONDS" => "1000000000" }), 7,
            Time.utc(2026, 1, 2, 3, 4, 5))
    assert_equal ["sonde-my_shop_.._x-20260102T030405.000Z-#{Process.pid}-7.pb.gz"], files
    assert_equal "bytes 7", File.read(File.join(@directory, files.first))
  end

  def test_the_directory_comes_from_the_target_or_the_variable_or_is_the_default
    assert_equal "/a/b", exporter({ "SONDE_DIRECTORY" => "/c" }, "/a/b").target
    assert_equal "/a/b", exporter({ "SONDE_DIRECTORY" => "/c" }, "file:///a/b").target
    assert_equal "/c", exporter({ "SONDE_DIRECTORY" => "/c" }, nil).target
    assert_equal File.join(Dir.pwd, "sonde-profiles"), exporter({}, nil).target
  end

  def test_the_oldest_go_when_there_are_too_many_and_no_other_file_does
    others = %w[mine.pb.gz sonde-notes.txt]
    others.each { |name| File.write(File.join(@directory, name), "") }
    exporter = exporter({ "SONDE_KEEP_FILES" => "3" })
    6.times { |i| deliver(exporter, i, Time.now - 60 + i) }
    assert_equal others, files & others
    assert_equal %w[3 4 5], (files - others).map { |name| name[/(\d+)\.pb\.gz/, 1] }
  end

  def test_old_files_go
    exporter = exporter({ "SONDE_KEEP_SECONDS" => "100" })
    deliver(exporter, 0, Time.now - 1000)
    deliver(exporter, 1, Time.now - 50)
    assert_equal ["1"], files.map { |name| name[/(\d+)\.pb\.gz/, 1] }
  end

  # A process that is killed between writing and renaming.
  def test_what_killed_processes_left_goes_after_an_hour
    old, fresh = %w[.sonde-1-a.part .sonde-1-b.part].map { |name| File.join(@directory, name) }
    [old, fresh].each { |path| File.write(path, "half") }
    File.utime(Time.now - 4000, Time.now - 4000, old)
    deliver(exporter)
    refute File.exist?(old)
    assert File.exist?(fresh)
  end

  def test_a_directory_that_was_removed_is_made_again
    exporter = exporter()
    deliver(exporter, 0)
    FileUtils.rm_rf(@directory)
    deliver(exporter, 1)
    assert_equal 1, files.size
  end

  def test_a_full_disk_is_worth_another_attempt_a_forbidden_directory_is_not
    full = Object.new
    def full.name
      "full.pb.gz"
    end

    def full.bytes
      raise Errno::ENOSPC
    end
    failure = assert_raises(Sonde::Report::Failure) { exporter.deliver(full) }
    assert failure.again?
    assert_match(/No space left/, failure.message)
    File.write(File.join(@directory, "file"), "")
    failure = assert_raises(Sonde::Report::Failure) { deliver(exporter({}, File.join(@directory, "file/below"))) }
    refute failure.again?
  end

  def test_wrong_settings_are_named
    error = assert_raises(ArgumentError) { exporter({ "SONDE_KEEP_FILES" => "many" }) }
    assert_equal 'wrong SONDE_KEEP_FILES: "many" (allowed: 1 to 1000000)', error.message
    assert_raises(ArgumentError) { exporter({}, "") }
  end
end
