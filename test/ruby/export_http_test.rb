# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/recording_server"
require "sonde/export/http"

# Requests against a server that misbehaves in every way.
class ExportHTTPTest < Minitest::Test
  HTTP = Sonde::Export::HTTP
  Failure = Sonde::Report::Failure
  SECRET = "s3cret-key"

  def http(url, **options)
    HTTP.new(url, again: [429, 503], secrets: [SECRET], timeout: 5, **options)
  end

  def post(url, headers = {}, **options)
    http(url, **options).post("/path", "the body", { "Content-Type" => "text/plain" }.merge(headers))
  end

  def failure(url, **options)
    assert_raises(Failure) { post(url, **options) }
  end

  def test_what_is_sent
    RecordingServer.open do |server|
      server.answers << [202, {}, "thanks"]
      answer = post("#{server.url}/base/", { "X-Key" => "1" })
      assert_equal [202, "thanks"], [answer.status, answer.body]
      request = server.wait_for(1).first
      assert_equal ["POST", "/base/path", "the body", "1"],
                   [request.method, request.path, request.body, request.headers["x-key"]]
    end
  end

  def test_over_a_unix_socket
    Dir.mktmpdir do |dir|
      RecordingServer.open(socket: "#{dir}/apm.socket") do |server|
        post("unix://#{dir}/apm.socket")
        request = server.wait_for(1).first
        assert_equal ["/path", "localhost", "the body"], [request.path, request.headers["host"], request.body]
      end
      assert failure("unix://#{dir}/none.socket").again?
    end
  end

  def test_basic_auth_of_the_url_is_sent_and_shown_nowhere
    RecordingServer.open do |server|
      url = server.url.sub("//", "//ada:pa%20ss@")
      http = http(url)
      http.post("/path", "", { "Content-Type" => "text/plain" })
      assert_equal "Basic #{["ada:pa ss"].pack("m0")}", server.wait_for(1).first.headers["authorization"]
      refute_match(/pa.{1,3}ss/, http.inspect + http.shown)
      server.answers << [500, {}, "you said ada:pa%20ss and pa ss"]
      failure = assert_raises(Failure) { http.post("/path", "", { "Content-Type" => "text/plain" }) }
      refute_match(/pa%20ss|pa ss/, failure.message)
    end
  end

  def test_statuses
    RecordingServer.open do |server|
      refused = [302, 401, 404, 413, 500].map { |status| [status, false] }
      (refused + [[429, true], [503, true]]).each do |status, again|
        server.answers << [status, {}, "because of #{SECRET}\n\x00\xFF"]
        failure = failure(server.url)
        assert_equal again, failure.again?, status
        assert_match(/answered #{status}: because of \*{8} \?\z/, failure.message)
        assert_nil failure.after
      end
    end
  end

  def test_retry_after_in_seconds_and_as_a_date
    RecordingServer.open do |server|
      server.answers << [429, { "Retry-After" => "17" }] << [429, { "Retry-After" => (Time.now + 100).httpdate }] <<
        [429, { "Retry-After" => "soon" }] << [503, { "Retry-After" => (Time.now - 100).httpdate }]
      assert_equal 17.0, failure(server.url).after
      assert_in_delta 100, failure(server.url).after, 20
      assert_nil failure(server.url).after
      assert_equal 0, failure(server.url).after
    end
  end

  def test_no_answer_is_worth_another_attempt
    RecordingServer.open do |server|
      server.answers << :close << :reset
      2.times { assert failure(server.url).again? }
      server.answers << :hang
      assert failure(server.url, timeout: 0.3).again?
    end
  end

  # It was taken: the status says so.
  def test_half_an_answer_is_one
    RecordingServer.open do |server|
      server.answers << :half
      assert_equal 200, post(server.url).status
    end
  end

  def test_a_server_that_hangs_up_in_the_middle_of_the_request
    RecordingServer.open do |server|
      server.cut = true
      failure = assert_raises(Failure) { http(server.url).post("/", "x" * 10_000_000, { "Content-Type" => "a/b" }) }
      assert failure.again?
    end
  end

  def test_nobody_listens
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    failure = failure("http://127.0.0.1:#{port}")
    assert failure.again?
    assert_match(/\Ahttp:\/\/127\.0\.0\.1:#{port}: .*refused/i, failure.message)
  end

  def test_a_name_that_does_not_exist
    assert failure("http://no-such-host.invalid").again?
  end

  def test_a_server_that_speaks_no_tls
    RecordingServer.open { |server| assert failure(server.url.sub("http", "https")).again? }
  end

  def test_a_body_without_end_does_not_fill_the_memory
    RecordingServer.open do |server|
      server.answers << [200, {}, "x" * 1_000_000]
      assert_operator post(server.url).body.bytesize, :<=, HTTP::ANSWER_BYTES * 2
    end
  end

  def test_wrong_urls_are_refused_without_telling_their_password
    ["", "localhost:4318", "ftp://x", "http://", "unix:", "http://ada:secret@[x"].each do |url|
      error = assert_raises(ArgumentError, url) { http(url) }
      refute_match(/secret/, error.message)
    end
  end

  def test_the_proxy_of_the_environment_is_used
    RecordingServer.open do |proxy|
      before = ENV.to_h
      ENV.update("http_proxy" => proxy.url, "no_proxy" => nil, "NO_PROXY" => nil)
      post("http://collector.invalid:4318")
      assert_equal "http://collector.invalid:4318/path", proxy.wait_for(1).first.path
    ensure
      ENV.replace(before)
    end
  end
end
