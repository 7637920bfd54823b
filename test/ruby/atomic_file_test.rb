# frozen_string_literal: true

require "test_helper"
require "sonde/atomic_file"
require "tmpdir"
require "pathname"

class AtomicFileTest < Minitest::Test
  def test_replaces_a_file_and_leaves_nothing_else
    Dir.mktmpdir do |dir|
      File.write("#{dir}/a", "old")
      Sonde::AtomicFile.write(Pathname("#{dir}/a"), "new")
      assert_equal "new", File.read("#{dir}/a")
      assert_equal ["a"], Dir.children(dir)
    end
  end

  def test_keeps_the_permissions_that_any_new_file_gets
    Dir.mktmpdir do |dir|
      Sonde::AtomicFile.write("#{dir}/a", "x")
      File.write("#{dir}/b", "x")
      assert_equal File.stat("#{dir}/b").mode, File.stat("#{dir}/a").mode
    end
  end

  def test_a_link_stays_a_link
    Dir.mktmpdir do |dir|
      File.write("#{dir}/real", "old")
      File.symlink("real", "#{dir}/link")
      Sonde::AtomicFile.write("#{dir}/link", "new")
      assert File.symlink?("#{dir}/link")
      assert_equal "new", File.read("#{dir}/real")
    end
  end

  # As Rails sets it.
  def test_bytes_stay_bytes_whatever_the_default_encodings
    before = Encoding.default_internal
    verbose, $VERBOSE = $VERBOSE, nil
    bytes = (0..255).to_a.pack("C*")
    ["UTF-8", "EUC-JP", nil].each do |encoding|
      Encoding.default_internal = encoding
      Dir.mktmpdir do |dir|
        Sonde::AtomicFile.write("#{dir}/a", bytes)
        assert_equal bytes, File.binread("#{dir}/a")
      end
    end
  ensure
    Encoding.default_internal = before
    $VERBOSE = verbose
  end

  def test_a_device_is_written_and_not_replaced
    Sonde::AtomicFile.check("/dev/null")
    Sonde::AtomicFile.write("/dev/null", "x")
    assert File.chardev?("/dev/null")
  end

  # Written all the same, it would end the process by SIGXFSZ.
  def test_what_is_larger_than_a_file_may_be_raises
    Dir.mktmpdir do |dir|
      status = Process.wait2(fork do
        Process.setrlimit(:FSIZE, 4)
        Sonde::AtomicFile.write("#{dir}/a", "four")
        begin
          Sonde::AtomicFile.write("#{dir}/a", "five!")
        rescue Errno::EFBIG
          exit!(7)
        end
      end).last
      assert_equal 7, status.exitstatus, status.inspect
      assert_equal ["a"], Dir.children(dir)
      assert_equal "four", File.read("#{dir}/a")
    end
  end

  def test_what_cannot_be_written_raises
    Dir.mktmpdir do |dir|
      ["#{dir}/none/a", dir, "/proc/self/a"].each do |path|
        assert_raises(SystemCallError, path) { Sonde::AtomicFile.check(path) }
        assert_raises(SystemCallError, path) { Sonde::AtomicFile.write(path, "x") }
      end
      assert_equal [], Dir.children(dir)
    end
  end
end
