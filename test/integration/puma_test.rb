# frozen_string_literal: true

require "test_helper"
require "json"
require "net/http"
require "open3"
require "rbconfig"
require "socket"
require "tmpdir"
require "support/pprof_decoder"
require "support/recording_server"

# A real Puma cluster that delivers to a recording server, as Datadog's agent would get it.
class PumaTest < Minitest::Test
  include TestHelper

  ROOT = TestHelper::ROOT
  WORKERS = 3

  CONFIG_RU = <<~RUBY
    require "sonde/rack"
    use Sonde::Rack

    module App
      module_function

      def work(seconds)
        finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
        1 while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
      end

      def a
        work(0.01)
      end

      def b
        work(0.02)
      end
    end

    run(lambda do |env|
      before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      env["PATH_INFO"].start_with?("/a") ? App.a : App.b
      used = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
      [200, { "content-type" => "text/plain" }, ["\#{Process.pid} \#{used}"]]
    end)
  RUBY

  def setup
    need_extension
    skip "the gem puma is not installed" unless system(RbConfig.ruby, "-e", 'require "puma"; require "rack"',
                                                       out: File::NULL, err: File::NULL)
    @directory = Dir.mktmpdir("sonde-puma")
    File.write("#{@directory}/config.ru", CONFIG_RU)
    @port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @agent = RecordingServer.new
  end

  def teardown
    if @puma
      Process.kill("KILL", @puma) if Process.waitpid(@puma, Process::WNOHANG).nil?
    end
  rescue SystemCallError
    nil # it has ended
  ensure
    @agent&.close
    FileUtils.rm_rf(@directory) if @directory
  end

  def start_puma(configuration, variables = {})
    File.write("#{@directory}/puma.rb", <<~RUBY)
      workers #{WORKERS}
      threads 2, 2
      bind "tcp://127.0.0.1:#{@port}"
      worker_timeout 120
      worker_boot_timeout 120
      #{configuration}
    RUBY
    environment = clean_environment.merge("SONDE_EXPORT" => "datadog=#{@agent.url}", "SONDE_INTERVAL" => "1",
                                          "DD_SERVICE" => "shop", "TMPDIR" => @directory,
                                          "SONDE_EXIT_TIMEOUT" => "60", "SONDE_BUDGET" => "20").merge(variables)
    environment["RUBYOPT"] = "-I#{ROOT}/lib -rsonde/auto"
    environment["SONDE_ENABLED"] = "1"
    @puma = Process.spawn(environment, RbConfig.ruby, "-S", "puma", "-C", "#{@directory}/puma.rb",
                          "#{@directory}/config.ru", chdir: @directory, %i[out err] => "#{@directory}/log")
    wait("the cluster is up") { log.scan(/Worker \d+ \(PID: \d+\) booted/).size >= WORKERS }
  end

  def log
    File.read("#{@directory}/log")
  end

  def wait(what, seconds = 120)
    finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    until (value = yield)
      flunk("#{what}: not within #{seconds} s\n#{log}") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish
      sleep 0.05
    end
    value
  end

  # Sends requests; answers { [pid, path] => [count, CPU seconds] } as the workers themselves say it.
  def load(count, path)
    said = Queue.new
    Array.new(4) do
      Thread.new do
        (count / 4).times { said << Net::HTTP.get(URI("http://127.0.0.1:#{@port}#{path}")) }
      end
    end.each(&:join)
    Array.new(said.size) { said.pop.split }.group_by(&:first).transform_values do |answers|
      [answers.size, answers.sum { |_, used| used.to_f }]
    end
  end

  def stop_puma
    Process.kill("TERM", @puma)
    Process.wait(@puma)
    @puma = nil
  end

  # Of all that came: { pid => { endpoint => [requests, CPU seconds in it] } }
  def delivered
    @agent.requests.group_by { |request| event(request)["tags_profiler"][/process_id:(\d+)/, 1] }
          .transform_values do |requests|
      counts = Hash.new { |hash, key| hash[key] = [0, 0.0] }
      requests.each do |request|
        (event(request)["endpoint_counts"] || {}).each { |endpoint, count| counts[endpoint][0] += count }
        PprofDecoder.decode(request.parts.fetch("profile.pprof").last).samples.each do |sample|
          # The method that worked says what the label has to be.
          %w[a b].each do |name|
            next unless sample.frames.any? { |frame| frame.name.end_with?("App.#{name}") }

            assert_equal "GET /#{name}/:id", sample.labels["trace endpoint"]
            counts["GET /#{name}/:id"][1] += sample.values["cpu-time"] / 1e9
          end
        end
      end
      counts
    end
  end

  def event(request)
    JSON.parse(request.parts.fetch("event").last)
  end

  # What the workers said they did, and what was delivered.
  def assert_all_there(said)
    got = delivered
    said.each do |endpoint, by_pid|
      by_pid.each do |pid, (count, cpu)|
        assert_equal count, got.fetch(pid)[endpoint].first, "requests of #{pid} to #{endpoint}"
        assert_in_delta cpu, got.fetch(pid)[endpoint].last, [cpu * 0.25, 0.2].max, "CPU of #{pid} in #{endpoint}"
      end
      whole = by_pid.values.sum(&:last)
      assert_in_delta whole, got.values.sum { |of| of[endpoint].last }, [whole * 0.12, 0.1].max, "CPU in #{endpoint}"
    end
  end

  def test_every_workers_work_is_delivered_with_its_endpoint
    start_puma("preload_app!")
    said = { "GET /a/:id" => load(200, "/a/1"), "GET /b/:id" => load(100, "/b/2") }
    stop_puma
    assert_all_there(said)
    runtime_ids = @agent.requests.group_by { |request| event(request)["tags_profiler"][/process_id:(\d+)/, 1] }
                        .transform_values { |all| all.map { |r| event(r)["tags_profiler"][/runtime-id:[^,]+/] }.uniq }
    runtime_ids.each_value { |ids| assert_equal 1, ids.size }
    assert_equal runtime_ids.size, runtime_ids.values.flatten.uniq.size
    refute_match(/sonde:/, log)
  end

  # One delivery for the cluster: the label "worker" tells the processes apart.
  def test_the_master_delivers_for_all_of_them
    start_puma("preload_app!", { "SONDE_GATHER" => "1" })
    said = { "GET /a/:id" => load(100, "/a/1"), "GET /b/:id" => load(60, "/b/2") }
    stop_puma
    senders = @agent.requests.map { |request| event(request)["tags_profiler"][/process_id:(\d+)/, 1] }.uniq
    assert_equal 1, senders.size
    counts = @agent.requests.map { |request| event(request)["endpoint_counts"] || {} }
    said.each do |endpoint, by_pid|
      assert_equal by_pid.values.sum(&:first), counts.sum { |all| all.fetch(endpoint, 0) }
    end
    samples = @agent.requests.flat_map { |r| PprofDecoder.decode(r.parts.fetch("profile.pprof").last).samples }
    said.each do |endpoint, by_pid|
      by_pid.each do |pid, (_, cpu)|
        of_worker = samples.select { |s| s.labels["worker"] == pid && s.labels["trace endpoint"] == endpoint }
        # The middleware's and the server's own work is in it too.
        assert_in_delta cpu, of_worker.sum { |s| s.values["cpu-time"] } / 1e9, [cpu * 0.35, 0.25].max
      end
    end
    refute_match(/sonde:/, log)
    assert_empty Dir["#{@directory}/sonde-gathering-*"]
  end

  def test_a_phased_restart_loses_nothing
    start_puma("")
    said = { "GET /a/:id" => load(100, "/a/1") }
    before = log.scan(/Worker \d+ \(PID: (\d+)\) booted/).flatten
    Process.kill("USR1", @puma)
    wait("all workers are new") { log.scan(/Worker \d+ \(PID: \d+\) booted/).size >= 2 * WORKERS }
    wait("the old ones are gone") { before.none? { |pid| File.exist?("/proc/#{pid}") } }
    said["GET /b/:id"] = load(60, "/b/1")
    stop_puma
    assert_all_there(said)
    assert_empty said["GET /b/:id"].keys & before
  end
end
