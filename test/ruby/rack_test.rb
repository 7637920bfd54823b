# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"
require "sonde/rack"

# The middleware, with the environments that frameworks leave behind. Real servers: test/integration/puma_test.rb.
class RackTest < Minitest::Test
  include TestHelper

  def setup
    need_extension
    Sonde::Requests.take
  end

  def request(path = "/orders/123", method = "GET", &app)
    env = { "REQUEST_METHOD" => method, "PATH_INFO" => path, "SCRIPT_NAME" => "" }
    Sonde::Rack.new(app || ->(_) { [200, {}, []] }).call(env)
  end

  def counted
    Sonde::Requests.take
  end

  def test_the_answer_is_the_applications
    assert_equal [201, { "a" => "b" }, ["c"]], request { [201, { "a" => "b" }, ["c"]] }
    error = assert_raises(RuntimeError) { request { raise "planned" } }
    assert_equal "planned", error.message
    assert_equal({ "GET /orders/:id" => 2 }, counted)
  end

  def test_routes_of_frameworks
    {
      { "sinatra.route" => "GET /a/:b" } => "GET /a/:b",
      { "action_dispatch.route_uri_pattern" => "/c/:id(.:format)" } => "POST /c/:id",
      { "action_dispatch.request.path_parameters" => { controller: "orders", action: "show" } } => "orders#show",
      { "grape.routing_args" => { route_info: Struct.new(:path).new("/api/:x(.json)") } } => "POST /api/:x",
      { "hanami.action_instance" => Object.new } => "Object",
      { "sonde.endpoint" => "mine", "sinatra.route" => "GET /a" } => "mine"
    }.each do |env, endpoint|
      request("/x", "POST") { |given| given.merge!(env) && [200, {}, []] }
      assert_equal({ endpoint => 1 }, counted)
    end
  end

  # It is counted where it was guessed to belong, and said, once.
  def test_a_framework_that_says_something_unexpected
    _, said = capture_io do
      2.times { request("/x/77", "POST") { |given| given.merge!("grape.routing_args" => Object.new) && [200, {}, []] } }
    end
    assert_equal({ "POST /x/:id" => 2 }, counted)
    assert_match(/\Asonde: a request's route is not understood .*\n\z/, said)
  end

  def test_paths_without_a_route
    {
      "/" => "/", "" => "/", "/orders/17/items/3" => "/orders/:id/items/:id",
      "/u/123e4567-e89b-12d3-a456-426614174000" => "/u/:id", "/c/deadbeefdeadbeef00" => "/c/:id",
      "/t/eyJhbGciOiJIUzI1NiIsInR5" => "/t/:id", "/about-our-company" => "/about-our-company",
      "/1/2/3/4/5/6/7/8" => "/:id/:id/:id/:id/:id/:id/...", "//x//y/" => "/x/y"
    }.each { |path, expected| assert_equal expected, Sonde::Rack.normalize(path), path }
  end

  def test_samples_have_the_route_also_those_before_it_was_known
    profile = Sonde.profile(rate: 1000) do
      request do |env|
        burn(0.05)
        Sonde.label(part: "inside") { burn(0.05) }
        env["sinatra.route"] = "GET /orders/:number"
        [200, {}, []]
      end
    end
    labels = PprofDecoder.decode(profile.to_pprof).samples.map { |sample| sample.labels["trace endpoint"] }.uniq
    assert_equal ["GET /orders/:number"], labels.compact
  end

  def test_requests_are_in_the_profile
    Sonde.start
    3.times { request("/a") }
    request("/b")
    profile = Sonde.stop
    assert_equal ["requests: 4", "requests to GET /a: 3", "requests to GET /b: 1"],
                 profile.comments.grep(/requests/)
    assert_empty counted
  end

  def test_the_number_of_endpoints_is_bounded
    600.times { |i| Sonde::Requests.count("e#{i}") }
    counts = counted
    assert_equal 600, counts.values.sum
    assert_equal 100, counts["(other)"]
  end

  def test_many_threads_count_right
    Array.new(8) { Thread.new { 500.times { request("/a") } } }.each(&:join)
    assert_equal({ "GET /a" => 4000 }, counted)
  end
end
