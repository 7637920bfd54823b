# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"
require "support/pprof_decoder"
require "sonde/report/variables"

# Starting from the environment alone, and what `sonde doctor` says about it.
class AutoTest < Minitest::Test
  include TestHelper

  ROOT = TestHelper::ROOT

  def setup
    @directory = Dir.mktmpdir("sonde-auto")
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  def run_auto(code, variables = {}, *options)
    environment = clean_environment.merge("SONDE_ENABLED" => "1", "RUBYOPT" => "-w -I#{ROOT}/lib -rsonde/auto")
    out, @status = Open3.capture2e(environment.merge(variables), RbConfig.ruby, *options, "-e", code, chdir: @directory)
    out
  end

  def test_a_program_that_knows_nothing_of_sonde
    need_extension
    out = run_auto("t = Process.clock_gettime(2); 1 while Process.clock_gettime(2) - t < 0.2; exit 3",
                   { "SONDE_MODES" => "cpu", "SONDE_RATE" => "200" })
    assert_empty out
    assert_equal 3, @status.exitstatus
    files = Dir["#{@directory}/sonde-profiles/*.pb.gz"]
    assert_equal 1, files.size
    profile = PprofDecoder.read(files.first)
    assert_operator profile.total("cpu-time"), :>=, 180_000_000
    refute_includes profile.types, "wall-time"
    assert_equal 5_000_000, profile.period
  end

  def test_without_sonde_enabled_nothing_is_even_loaded
    [nil, "0", "", "no"].each do |value|
      out = run_auto("p defined?(Sonde), $LOADED_FEATURES.grep(/sonde/).map { |f| File.basename(f) }",
                     { "SONDE_ENABLED" => value })
      assert_equal "nil\n[\"auto.rb\"]\n", out
    end
  end

  def test_what_is_wrong_is_said_in_one_line_and_the_program_runs
    need_extension
    { "SONDE_RATE" => "fast", "SONDE_MODES" => "cpu,gpu", "SONDE_EXPORT" => "pigeon", "SONDE_INTERVAL" => "0",
      "SONDE_MAX_FRAMES" => "1", "SONDE_KEEP_FILES" => "x" }.each do |name, value|
      out = run_auto("puts 'runs'", { name => value })
      assert_match(/\Asonde: not started: .*\nruns\n\z/, out, name)
      assert_match(value[/\w+\z/], out)
      assert @status.success?
    end
  end

  def test_where_there_is_no_engine_one_line_says_so
    Dir.mktmpdir do |dir|
      FileUtils.cp_r("#{ROOT}/lib", dir)
      FileUtils.rm_f(Dir["#{dir}/lib/sonde/*.so"])
      out = run_auto("puts 'runs'", { "RUBYOPT" => "-w -I#{dir}/lib -rsonde/auto" })
      assert_match(/\ASonde cannot profile this Ruby: [^\n]*\nruns\n\z/, out)
    end
  end

  def test_it_is_not_started_twice_and_children_by_fork_and_by_spawn_report_too
    need_extension
    run_auto("require 'sonde/auto'; Process.wait(fork { }); system(#{RbConfig.ruby.inspect}, '-e', '1')",
             { "SONDE_EXPORT" => "file=#{@directory}/out" })
    pids = Dir.children("#{@directory}/out").map { |name| name[/-(\d+)-\d+\.pb/, 1] }
    assert_equal 3, pids.size
    assert_equal 3, pids.uniq.size
  end

  def test_doctor_shows_what_is_set_and_what_it_resolves_to_without_secrets
    environment = clean_environment.merge(
      "SONDE_EXPORT" => "pyroscope=http://ada:geheim@pyro:4040,otlp,datadog", "DD_API_KEY" => "geheim",
      "OTEL_EXPORTER_OTLP_HEADERS" => "k=geheim", "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://c:1",
      "PYROSCOPE_BASIC_AUTH_PASSWORD" => "geheim", "DD_TRACE_AGENT_URL" => "http://a:2", "DD_SERVICE" => "shop"
    )
    out, = Open3.capture2e(environment, RbConfig.ruby, "-w", "-I#{ROOT}/lib", "#{ROOT}/exe/sonde", "doctor")
    refute_match(/geheim/, out)
    assert_match(/DD_API_KEY +\*+$/, out)
    assert_match(/service +shop$/, out)
    assert_match(%r{to pyroscope +http://pyro:4040/push.v1.PusherService/Push$}, out)
    assert_match(%r{to otlp +http://c:1/v1development/profiles$}, out)
    assert_match(%r{to datadog +http://a:2/profiling/v1/input$}, out)
    assert_match(/starts by itself +no: SONDE_ENABLED is not 1/, out)
    out, = Open3.capture2e(environment.merge("SONDE_INTERVAL" => "soon"), RbConfig.ruby, "-I#{ROOT}/lib",
                           "#{ROOT}/exe/sonde", "doctor")
    assert_match(/does not start +wrong SONDE_INTERVAL: "soon" \(allowed: 0\.1 to 86400\.0\)/, out)
  end

  def test_every_variable_is_documented_and_every_documented_one_exists
    known = Sonde::Report::Variables::OWN.keys + Sonde::Report::Variables::OTHERS.keys
    documented = File.read("#{ROOT}/docs/configuration.md").scan(/^\| `(\w+)` \|/).flatten
    assert_equal known.sort, documented.sort
    used = Dir["#{ROOT}/lib/**/*.rb"].flat_map { |path| File.read(path).scan(/"((?:SONDE|DD)_[A-Z_]+)"/).flatten }.uniq
    assert_empty used.reject { |name| name.start_with?("SONDE_RUN", "SONDE_NO_", "SONDE_REQUIRE") } - known
  end
end
