# frozen_string_literal: true

require "test_helper"
require "json"
require "support/official_otlp"
require "support/pprof_builder"
require "support/pprof_decoder"
require "support/recording_server"
require "sonde/export"
require "sonde/export/container"

# What each backend is sent: everything goes through a recording server.
class ExportersTest < Minitest::Test
  Flushed = Sonde::Report::Flushed

  def setup
    skip Sonde.unsupported_reason unless Sonde.supported?
    @server = RecordingServer.new
  end

  def teardown
    @server&.close
  end

  def exporter(words, variables = {})
    Sonde::Export.parse(words, Sonde::Report::Environment.new({ "SONDE_SERVICE" => "shop" }.merge(variables))).first
  end

  def profile
    builder = PprofBuilder.new([%w[cpu-time nanoseconds], %w[cpu-samples count], %w[wall-time nanoseconds],
                                %w[wall-samples count], %w[gvl-wait-time nanoseconds], %w[alloc-size bytes]])
    stack = [["Foo#bar", "/a.rb", 12], ["<main>", "/a.rb", 20]]
    thread = { "thread id" => "77", "thread name" => "main" }
    builder.sample(stack, [20, 2, 30, 3, 0, 9], thread.merge("state" => "running", "trace endpoint" => "GET /x",
                                                              "span id" => 0xab, "local root span id" => 0xcd))
    builder.sample(stack, [0, 0, 5, 1, 5, 0], thread.merge("state" => "gvl-wait", "user" => "ada"))
    builder.sample([["wait", "/a.rb", 1]], [0, 0, 7, 1, 0, 0], thread.merge("state" => "blocked"))
    Sonde::Profile.from_pprof(builder.bytes)
  end

  def deliver(exporter, profile = self.profile, **options)
    parts = exporter.encode(Flushed.new(profile, 4, **options))
    parts.each { |part| exporter.deliver(part) }
    @server.wait_for(parts.size)
  end

  # -- Datadog ---------------------------------------------------------------------------------------------------------

  def datadog(variables = {})
    exporter("datadog=#{@server.url}", variables)
  end

  def event(request)
    JSON.parse(request.parts.fetch("event").last)
  end

  def test_datadog_request
    request = deliver(datadog({ "DD_ENV" => "prod", "DD_VERSION" => "1.2", "DD_TAGS" => "team:a,bad,service:mine",
                                "DD_EXTERNAL_ENV" => "it-false" }), endpoints: { "GET /x" => 3 }).first
    assert_equal ["POST", "/profiling/v1/input"], [request.method, request.path]
    assert_equal %w[sonde close it-false],
                 request.headers.values_at("dd-evp-origin", "connection", "datadog-external-env")
    assert_nil request.headers["dd-api-key"]
    fields, = request.parts.fetch("event")
    assert_match(/filename="event.json"/, fields["content-disposition"])
    assert_equal "application/json", fields["content-type"]
    event = event(request)
    assert_equal ["profile.pprof"], event["attachments"]
    assert_equal %w[ruby 4], event.values_at("family", "version")
    assert_equal "2023-11-14T22:13:20.000000000Z", event["start"]
    assert_equal "2023-11-14T22:14:20.000000000Z", event["end"]
    assert_equal({ "GET /x" => 3 }, event["endpoint_counts"])
    tags = event["tags_profiler"].split(",").map { |tag| tag.split(":", 2) }.to_h
    assert_equal %w[shop prod 1.2 a ruby 4],
                 tags.values_at("service", "env", "version", "team", "language", "profile_seq")
    assert_equal Process.pid.to_s, tags["process_id"]
    assert_match(/\A\h{8}-\h{4}-\h{4}-\h{4}-\h{12}\z/, tags["runtime-id"])
  end

  def test_datadog_profile_has_its_types_and_words
    pprof = PprofDecoder.decode(deliver(datadog).first.parts.fetch("profile.pprof").last)
    assert_equal %w[cpu-time cpu-samples wall-time], pprof.types
    assert_equal ["had cpu", "waiting for gvl", "blocked"], pprof.samples.map { |sample| sample.labels["state"] }
    assert_equal [0xab, 0xcd, "GET /x"], pprof.samples.first.labels.values_at("span id", "local root span id",
                                                                                  "trace endpoint")
    assert_equal({ "cpu-time" => 20, "cpu-samples" => 2, "wall-time" => 42 }, pprof.totals)
  end

  def test_datadog_addresses
    at = ->(variables) { exporter("datadog", variables).target }
    socket = "/var/run/datadog/apm.socket"
    default = File.socket?(socket) ? "unix://#{socket}" : "http://127.0.0.1:8126"
    assert_equal "#{default}/profiling/v1/input", at.call({})
    assert_equal "http://agent:1/profiling/v1/input",
                 at.call({ "DD_AGENT_HOST" => "agent", "DD_TRACE_AGENT_PORT" => "1" })
    assert_equal "http://[::1]:8126/profiling/v1/input", at.call({ "DD_AGENT_HOST" => "::1" })
    assert_equal "https://a/profiling/v1/input",
                 at.call({ "DD_TRACE_AGENT_URL" => "https://a", "DD_AGENT_HOST" => "b" })
    assert_equal "unix:///run/apm.socket/profiling/v1/input",
                 at.call({ "DD_TRACE_AGENT_URL" => "unix:///run/apm.socket" })
    assert_equal "https://intake.profile.datadoghq.eu/api/v2/profile",
                 at.call({ "DD_PROFILING_AGENTLESS" => "true", "DD_API_KEY" => "k", "DD_SITE" => "datadoghq.eu" })
    assert_raises(ArgumentError) { at.call({ "DD_PROFILING_AGENTLESS" => "1" }) }
  end

  def test_datadog_without_an_agent_sends_the_key_and_shows_it_nowhere
    exporter = exporter("datadog", { "DD_PROFILING_AGENTLESS" => "1", "DD_API_KEY" => "abcsecret" })
    exporter.instance_variable_set(:@http, Sonde::Export::HTTP.new(@server.url, again: [], secrets: ["abcsecret"]))
    @server.answers << [403, {}, "bad key abcsecret"]
    error = assert_raises(Sonde::Report::Failure) { deliver(exporter) }
    request = @server.wait_for(1).first
    assert_equal ["/api/v2/profile", "abcsecret"], [request.path, request.headers["dd-api-key"]]
    refute_match(/abcsecret/, error.message + exporter.inspect + exporter.target)
  end

  def test_datadog_process_is_another_after_a_fork
    exporter = datadog
    2.times { deliver(exporter); exporter.after_fork }
    ids = @server.wait_for(2).map { |request| event(request)["tags_profiler"][/runtime-id:([^,]+)/, 1] }
    refute_equal(*ids)
  end

  def test_container_ids
    id = "a" * 64
    container = ->(text) { Sonde::Export::Container.id_in(text) }
    assert_equal id, container.call("12:memory:/docker/#{id}\n")
    assert_equal id, container.call("1:name=systemd:/kubepods.slice/cri-containerd-#{id}.scope\n")
    assert_equal "#{"b" * 32}-1234567890", container.call("0::/ecs/#{"b" * 32}-1234567890")
    assert_equal "6f265890-5165-7fab-6b52-18d1", container.call("1:a:/garden/6f265890-5165-7fab-6b52-18d1\n")
    assert_nil container.call("0::/\n1:cpu:/user.slice\n")
  end

  # -- Pyroscope -------------------------------------------------------------------------------------------------------

  # { series => [labels, pprof bytes] }
  def pushed(requests)
    requests.map do |request|
      series = protobuf(protobuf(request.plain)[1].first)
      labels = series[1].map { |pair| protobuf(pair).values_at(1, 2).map(&:first) }.to_h
      sample = protobuf(series[2].first)
      assert_match(/\A\h{8}-\h{4}/, sample[2].first)
      [labels["__name__"], [labels, sample[1].first]]
    end
  end

  # { field => [every value] }; fields of this message are all length-delimited.
  def protobuf(bytes)
    fields = Hash.new { |hash, key| hash[key] = [] }
    io = StringIO.new(bytes)
    until io.eof?
      tag = io.getbyte
      assert_equal 2, tag & 7
      length = shift = 0
      loop do
        byte = io.getbyte
        length |= (byte & 127) << shift
        shift += 7
        break if byte < 128
      end
      fields[tag >> 3] << io.read(length)
    end
    fields
  end

  def test_pyroscope_request
    requests = deliver(exporter("pyroscope=#{@server.url}", { "PYROSCOPE_LABELS" => "region=eu,a-b=c" }))
    assert_equal %w[/push.v1.PusherService/Push] * 4, requests.map(&:path)
    assert_equal %w[application/proto gzip], requests.first.headers.values_at("content-type", "content-encoding")
    series = pushed(requests).to_h
    assert_equal %w[process_cpu wall gvl_wait memory], series.keys
    labels, raw = series["process_cpu"]
    assert_equal %w[shop eu c false], labels.values_at("service_name", "region", "a_b", "__delta__")
    pprof = PprofDecoder.decode(raw)
    assert_equal [%w[cpu nanoseconds], %w[samples count]], pprof.sample_types.map(&:to_a)
    assert_equal %w[cpu nanoseconds], pprof.period_type.to_a
    assert_equal({ "cpu" => 20, "samples" => 2 }, pprof.totals)
    assert_equal({ "wall" => 42 }, PprofDecoder.decode(series["wall"].last).totals)
    assert_equal({ "gvl_wait" => 5 }, PprofDecoder.decode(series["gvl_wait"].last).totals)
  end

  # "-" in a type is refused there, and each text label is a series of its own.
  def test_pyroscope_names
    series = pushed(deliver(exporter("pyroscope=#{@server.url}"))).to_h
    series.each_value do |labels, raw|
      assert(labels.keys.all? { |key| key.match?(/\A[A-Za-z_][A-Za-z0-9_.]*\z/) })
      pprof = PprofDecoder.decode(raw)
      refute(pprof.types.any? { |type| type.include?("-") })
      keys = pprof.samples.flat_map { |sample| sample.labels.keys }.uniq
      assert_empty keys - %w[endpoint span_id trace_id user]
    end
    first = PprofDecoder.decode(series["process_cpu"].last).samples.first
    assert_equal({ "span_id" => "00000000000000ab", "endpoint" => "GET /x" }, first.labels)
  end

  def test_pyroscope_splits_what_is_too_large
    builder = PprofBuilder.new([%w[cpu-time nanoseconds]])
    40_000.times { |i| builder.sample([["m#{i}", "/a.rb", 1]], [1], {}) }
    deep = Array.new(3000) { |i| ["d#{i}", "/a.rb", i] }
    builder.sample(deep, [5], {})
    parts = pushed(deliver(exporter("pyroscope=#{@server.url}"), Sonde::Profile.from_pprof(builder.bytes)))
    profiles = parts.map { |_, (_, raw)| PprofDecoder.decode(raw) }
    assert_operator profiles.size, :>=, 3
    profiles.each { |pprof| assert_operator pprof.samples.size, :<=, 16_000 }
    parts.each { |_, (_, raw)| assert_operator Zlib.gunzip(raw).bytesize, :<=, 4 * 1024 * 1024 }
    assert_equal 40_005, profiles.sum { |pprof| pprof.total("cpu") }
    stack = profiles.flat_map(&:samples).find { |sample| sample.frames.size > 1 }.frames.map(&:name)
    assert_equal 1000, stack.size
    assert_equal %w[d0 d2999], [stack.first, stack.last]
    assert_includes stack, "(2001 frames omitted)"
  end

  def test_pyroscope_credentials
    secret = { "PYROSCOPE_BASIC_AUTH_USER" => "ada", "PYROSCOPE_BASIC_AUTH_PASSWORD" => "pass-word",
               "PYROSCOPE_TENANT_ID" => "team-a" }
    exporter = exporter("pyroscope", secret.merge("PYROSCOPE_SERVER_ADDRESS" => @server.url))
    request = deliver(exporter).first
    assert_equal ["Basic #{["ada:pass-word"].pack("m0")}", "team-a"],
                 request.headers.values_at("authorization", "x-scope-orgid")
    refute_match(/pass-word/, exporter.inspect)
    request = deliver(exporter("pyroscope=#{@server.url}", { "PYROSCOPE_AUTH_TOKEN" => "tok" })).last
    assert_equal "Bearer tok", request.headers["authorization"]
    assert_raises(ArgumentError) { exporter("pyroscope", { "PYROSCOPE_TENANT_ID" => "a/b" }) }
  end

  # -- OTLP ------------------------------------------------------------------------------------------------------------

  def test_otlp_request
    variables = { "OTEL_EXPORTER_OTLP_HEADERS" => "api-key=se%2Ccret,x=y", "OTEL_SERVICE_NAME" => "other",
                  "OTEL_RESOURCE_ATTRIBUTES" => "service.version=3,team=a%20b" }
    exporter = exporter("otlp=#{@server.url}", variables.merge("SONDE_SERVICE" => ""))
    request = deliver(exporter).first
    assert_equal "/v1development/profiles", request.path
    assert_equal ["application/x-protobuf", "gzip", "se,cret", "y"],
                 request.headers.values_at("content-type", "content-encoding", "api-key", "x")
    refute_match(/cret/, exporter.inspect)
    skip OfficialOtlp.missing if OfficialOtlp.missing

    body = OfficialOtlp.decode(request.plain)
    assert_empty OfficialOtlp.violations(body)
    resource = OfficialOtlp.resource(body)
    assert_equal ["other", "3", "a b", Process.pid, "ruby"],
                 resource.values_at("service.name", "service.version", "team", "process.pid", "telemetry.sdk.language")
    samples = OfficialOtlp.samples(body)
    assert_equal({ "cpu" => 20, "wall" => 42, "gvl_wait" => 5, "allocated_space" => 9 },
                 samples.transform_values { |all| all.sum { |sample| sample[2].first } })
    assert_equal "GET /x", samples["cpu"].first[1]["http.route"]
  end

  def test_otlp_endpoints
    at = ->(variables) { exporter("otlp", variables).target }
    assert_equal "http://localhost:4318/v1development/profiles", at.call({})
    assert_equal "http://c:1/x/v1development/profiles", at.call({ "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://c:1/x" })
    assert_equal "http://c:1/all", at.call({ "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT" => "http://c:1/all",
                                              "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://d" })
  end

  def test_otlp_without_compression
    request = deliver(exporter("otlp=#{@server.url}", { "OTEL_EXPORTER_OTLP_COMPRESSION" => "none" })).first
    assert_nil request.headers["content-encoding"]
    assert_equal 0x0a, request.body.getbyte(0)
  end

  # A partial success is none to try again.
  def test_otlp_partial_success
    ["\x0a\x06\x08\x03\x12\x02no", "\x0a\x04\x12\x02hm", "\xFF"].each { |body| @server.answers << [200, {}, body.b] }
    exporter = exporter("otlp=#{@server.url}")
    error = assert_raises(Sonde::Report::Failure) { deliver(exporter) }
    refute error.again?
    assert_match(/refused 3 profiles: no/, error.message)
    2.times { deliver(exporter) }
  end

  # -- All of them -----------------------------------------------------------------------------------------------------

  def test_statuses_by_the_tables
    { "datadog" => [[401, false], [413, false], [408, true], [429, true], [500, true]],
      "pyroscope" => [[401, false], [413, false], [422, false], [408, true], [429, true], [500, true]],
      "otlp" => [[401, false], [413, false], [408, false], [429, true], [500, false], [503, true]] }.each do |kind, all|
      exporter = exporter("#{kind}=#{@server.url}")
      part = exporter.encode(Flushed.new(profile, 0)).first
      all.each do |status, again|
        @server.answers << status
        error = assert_raises(Sonde::Report::Failure) { exporter.deliver(part) }
        assert_equal again, error.again?, "#{kind} #{status}"
      end
    end
  end

  def test_a_profile_without_samples_is_not_sent
    %w[datadog pyroscope otlp].each do |kind|
      assert_empty exporter("#{kind}=#{@server.url}").encode(Flushed.new(Sonde::Profile.blank, 0))
    end
  end

  def test_words
    parse = ->(value) { Sonde::Export.parse(value, Sonde::Report::Environment.new({})).map(&:name) }
    assert_empty parse.call(nil)
    assert_empty parse.call(false)
    assert_equal ["file"], parse.call(true)
    assert_equal %w[file otlp], parse.call(" file=/x , otlp=http://c:1,")
    assert_equal %w[datadog pyroscope], parse.call([:datadog, "pyroscope"])
    error = assert_raises(ArgumentError) { parse.call("carrier-pigeon") }
    assert_match(/wrong option export: "carrier-pigeon" \(allowed: file, datadog, pyroscope, otlp/, error.message)
  end
end
