# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "rbconfig"

# Trace and span ids, with the real tracers where they are installed: each in a process of its own.
class TracesTest < Minitest::Test
  include TestHelper

  BEGINNING = <<~RUBY
    require "json"
    require "support/pprof_decoder"
    def burn
      finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + 0.05
      1 while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
    end
    def in_root; burn; end
    def in_child; burn; end
    def in_thread; burn; end
    def outside; burn; end
    def labels(profile)
      %w[in_root in_child in_thread outside].map do |name|
        samples = PprofDecoder.decode(profile.to_pprof).samples
        samples = samples.select { |s| s.frames.any? { |f| f.name.end_with?(name) } }
        [name, samples.map { |s| s.labels.reject { |key, _| key.start_with?("thread", "state") } }.uniq]
      end.to_h
    end
  RUBY

  def setup
    need_extension
  end

  def run_with(gem, code)
    environment = { "RUBYOPT" => nil, "DD_TRACE_ENABLED" => nil }
    code = "begin; require #{gem.inspect}; rescue LoadError; exit 75; end\n#{BEGINNING}#{code}"
    out, err, status = Open3.capture3(environment, RbConfig.ruby, "-I#{ROOT}/lib", "-I#{ROOT}/test", "-e", code)
    skip "the gem #{gem} is not installed" if status.exitstatus == 75
    assert status.success?, err
    JSON.parse(out.lines.last)
  end

  ROOT = TestHelper::ROOT

  def unsigned(number)
    number & (1 << 64) - 1
  end

  def test_opentelemetry
    result = run_with("opentelemetry-sdk", <<~RUBY)
      require "sonde/trace/opentelemetry"
      Export = OpenTelemetry::SDK::Trace::Export
      OpenTelemetry::SDK.configure do |c|
        c.add_span_processor(Export::SimpleSpanProcessor.new(Export::InMemorySpanExporter.new))
      end
      tracer = OpenTelemetry.tracer_provider.tracer("test")
      ids = {}
      profile = Sonde.profile(rate: 1000) do
        outside
        tracer.in_span("root", kind: :server, attributes: { "http.request.method" => "GET" }) do |root|
          in_root
          tracer.in_span("child") do |child|
            in_child
            thread = Thread.new(&Sonde.carry { in_thread })
            thread.join
            ids[:child] = child.context.span_id.unpack1("Q>")
          end
          root.set_attribute("http.route", "/x/:id")
          ids[:root] = root.context.span_id.unpack1("Q>")
          ids[:trace] = root.context.hex_trace_id
        end
        outside
      end
      puts JSON.generate({ ids: ids, labels: labels(profile), left: Sonde.labels })
    RUBY
    check(result, "GET /x/:id")
  end

  def test_datadog
    result = run_with("datadog", <<~RUBY)
      require "logger"
      Datadog.configure do |c|
        c.logger.level = ::Logger::FATAL
        c.tracing.test_mode.enabled = true
        c.telemetry.enabled = false
      end
      require "sonde/trace/datadog"
      ids = {}
      profile = Sonde.profile(rate: 1000) do
        outside
        Datadog::Tracing.trace("root", type: "web", resource: "?") do |root|
          in_root
          Datadog::Tracing.trace("child") do |child|
            in_child
            Thread.new(&Sonde.carry { in_thread }).join
            ids[:child] = child.id
          end
          root.resource = "GET /x/:id"
          ids[:root] = root.id
          ids[:trace] = format("%032x", root.trace_id)
        end
        outside
      end
      puts JSON.generate({ ids: ids, labels: labels(profile), left: Sonde.labels })
    RUBY
    check(result, "GET /x/:id")
  end

  private

  def check(result, endpoint)
    ids = result["ids"]
    common = { "trace id" => ids["trace"], "local root span id" => ids["root"], "trace endpoint" => endpoint }
    root = common.merge("span id" => ids["root"])
    child = common.merge("span id" => ids["child"])
    seen = result["labels"].transform_values do |all|
      all.map { |labels| labels.transform_values { |v| v.is_a?(Integer) ? unsigned(v) : v } }
    end
    assert_equal({ "in_root" => [root], "in_child" => [child], "outside" => [{}] },
                 seen.reject { |name, _| name == "in_thread" })
    # What was carried away keeps what was known when it was.
    assert_equal [child.reject { |key, _| key == "trace endpoint" }], seen["in_thread"]
    assert_empty result["left"]
  end
end
