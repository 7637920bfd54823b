# frozen_string_literal: true

require "test_helper"
require "support/pprof_builder"
require "support/pprof_decoder"
require "sonde/report/gathering"

# What children hand over, and how it is added up; whole clusters are in test/integration/puma_test.rb.
class GatheringReportTest < Minitest::Test
  Flushed = Sonde::Report::Flushed
  Failure = Sonde::Report::Failure

  def setup
    skip Sonde.unsupported_reason unless Sonde.supported?
    @gathering = Sonde::Report::Gathering.new
    @gathering.begin
  end

  def teardown
    @gathering&.remove
  end

  def flushed(value, endpoints = {})
    builder = PprofBuilder.new([%w[cpu-time nanoseconds]]).sample([["work", "/a.rb", 1]], [value], {})
    Flushed.new(Sonde::Profile.from_pprof(builder.bytes), 3, endpoints: endpoints)
  end

  def hand_over(value, endpoints = {})
    child = @gathering.hand_over
    child.encode(flushed(value, endpoints)).each { |part| child.deliver(part) }
  end

  def test_the_directory_is_for_this_user_only
    assert_equal 0o700, File.stat(@gathering.directory).mode & 0o777
  end

  def test_everything_is_added_up_once
    pids = Array.new(3) { |i| fork { hand_over(10**i, { "GET /a" => 1 }); exit!(0) } }
    pids.each { |pid| assert Process.wait2(pid).last.success? }
    sum = @gathering.add_up(flushed(5000, { "GET /a" => 2, "GET /b" => 1 }))
    assert_equal({ "GET /a" => 5, "GET /b" => 1 }, sum.endpoints)
    by_worker = PprofDecoder.decode(sum.pprof).samples.map { |s| [s.labels["worker"], s.values["cpu-time"]] }.to_h
    assert_equal({ pids[0].to_s => 1, pids[1].to_s => 10, pids[2].to_s => 100, Process.pid.to_s => 5000 }, by_worker)
    assert_empty Dir.children(@gathering.directory)
    alone = flushed(1)
    assert_same alone, @gathering.add_up(alone)
  end

  def test_what_cannot_be_read_is_named
    File.write(File.join(@gathering.directory, "77-0.profile"), "{}\nrubbish")
    sum = @gathering.add_up(flushed(1))
    assert_match(/a profile of process 77 is lost: not a pprof profile/, sum.profile.comments.join)
    assert_empty Dir.children(@gathering.directory)
  end

  def test_without_its_directory_it_goes_on
    @gathering.remove
    own = flushed(1)
    assert_same own, @gathering.add_up(own)
    assert_raises(Failure) { hand_over(1) }
  end

  def test_nobody_gathers
    reader, writer = IO.pipe
    Process.wait(fork do
      gathering = Sonde::Report::Gathering.new
      gathering.begin
      fork do
        begin
          # Until somebody has waited for it, an ended process is still there.
          sleep 0.01 while Process.kill(0, gathering.instance_variable_get(:@owner))
        rescue Errno::ESRCH
          nil
        end
        begin
          gathering.put(Sonde::Report::FilePart.new("1-1.profile", ""))
        rescue Failure => e
          writer.write(e.message)
        end
        writer.close
        FileUtils.rm_rf(gathering.directory)
        exit!(0)
      end
      exit!(0)
    end)
    writer.close
    assert_match(/is gone/, reader.read)
  end
end
