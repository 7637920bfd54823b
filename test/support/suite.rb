# frozen_string_literal: true

# What bin/test runs once the extension is compiled: each test file in a process of its own (a crash or a hang is then
# one failure, not the end), the C tests, and the other Rubies. Prints at the end what was skipped and why, what failed
# (and what did not fail each time: unsteady), and the sums.
require "etc"
require "json"
require "rbconfig"
require "tmpdir"

class Suite
  ROOT = File.expand_path("../..", __dir__)
  # Seconds after which a part is taken for hung, and killed.
  LIMIT = 900
  MATRIX_LIMIT = 2000 # two side by side
  MATRIX = %w[3.3 3.4 2.7].freeze
  # A Ruby of the matrix that cannot be had is a skip; for these it is a failure in CI.
  MUST_RUN = %w[3.3].freeze
  # A test that failed is run again so often at most, after so many seconds each time.
  AGAIN = 2
  PAUSE = 5
  UNAVAILABLE = 75 # exit status of bin/matrix
  SUMS = /^(?:[\w ]+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.freeze

  def initialize(words)
    @words = words
    @passed = @failed = @skipped = 0
    @reasons = [] # [where, reason]
    @failures = [] # [where, message]
    @unsteady = [] # failed, and passed when run again
  end

  def run
    # A shell that starts us in the background has us ignore these, and so would all that we start.
    %w[INT QUIT].each { |signal| trap(signal, "DEFAULT") }
    puts "#{RUBY_DESCRIPTION}, #{Etc.nprocessors} processors"
    Dir.mktmpdir("sonde-test") do |dir|
      @dir = dir
      extension_works
      Dir.chdir(ROOT) { Dir["test/**/*_test.rb"].sort }.each { |file| test_file(file) if wanted?(file) }
      c_tests if wanted?("test/c/run") && ENV["SONDE_TEST_C"] != "0"
      matrix if wanted?("matrix")
    end
    report
    @failed.zero? && @passed.positive?
  end

  private

  def wanted?(name)
    @words.empty? || @words.any? { |word| name.include?(word) }
  end

  # Without this, tests that skip where Sonde is not supported would make a broken build look fine.
  def extension_works
    code = 'abort Sonde.unsupported_reason.to_s unless Sonde.supported?; print "works"'
    out, status, seconds = capture(RbConfig.ruby, "-w", "-Ilib", "-rsonde", "-e", code)
    good = status == 0 && out == "works"
    @failures << ["the extension loads", out] unless good
    count("the extension loads", good ? 1 : 0, good ? 0 : 1, [], seconds, out)
  end

  # What failed is run again, alone: on a busy machine statistics and clocks can be off. A test that is wrong fails each
  # time; what failed and passed later is named at the end all the same. A crash or a hang is one, however often.
  def test_file(file)
    result, out, seconds = run_file(file)
    first = failures = result["failures"]
    AGAIN.times do
      break if failures.empty? || failures.assoc(file)

      sleep PAUSE
      again, more, time = run_file(file, failures.map(&:first))
      failures = again["failures"]
      out = "#{out}\n-- what failed, again --\n#{more}"
      seconds += time
    end
    names = failures.map(&:first)
    steadied = first.reject { |name, _| names.include?(name) }
    @unsteady.concat(steadied)
    @failures.concat(failures)
    count(file, result["passed"] + steadied.size, failures.size, result["skips"], seconds, out)
  end

  # names: of the tests ("Class#test_it"); all tests of the file without.
  def run_file(file, names = [])
    tally = File.join(@dir, "tally.json")
    File.delete(tally) if File.exist?(tally)
    only = names.empty? ? [] : ["--name", "/\\A(?:#{Regexp.union(names).source})\\z/"]
    out, status, seconds = capture(RbConfig.ruby, "-w", "-Itest", "-Ilib", "test/support/tally.rb", tally, file, *only)
    result = File.exist?(tally) ? JSON.parse(File.read(tally)) : { "passed" => 0, "failures" => [], "skips" => [] }
    failures = result["failures"]
    failures << [file, "ended with #{status}"] if failures.empty? && status != 0
    # Test files in which nothing is a test would otherwise pass.
    failures << [file, "no test in it ran"] if failures.empty? && result["passed"].zero? && result["skips"].empty?
    [result, out, seconds]
  end

  def c_tests
    out, status, seconds = capture("test/c/run")
    passed, failed, = sums(out)
    failed = 1 if status != 0 && failed.zero? || passed.zero?
    @failures << ["test/c/run", out.lines.grep(/FAIL|ERROR|error:/).first(5).join(" ")] unless failed.zero?
    count("test/c/run", passed, failed, [], seconds, out)
  end

  def matrix
    return if ENV["SONDE_TEST_MATRIX"] == "inside"

    unless ENV["SONDE_TEST_MATRIX"] == "1"
      reason = "SONDE_TEST_MATRIX is not 1 (needs root and debootstrap)"
      return MATRIX.each { |version| skip("Ruby #{version}", reason) }
    end

    same, others = MATRIX.partition { |version| RUBY_VERSION.start_with?("#{version}.") }
    same.each { |version| skip("Ruby #{version} in a chroot", "it is the Ruby that already ran") }
    others.each_slice([Etc.nprocessors, 2].min) do |versions|
      versions.map { |version| Thread.new { [version, *in_chroot(version)] } }.each { |thread| judge(*thread.value) }
    end
  end

  # The C tests have no Ruby in them: once is enough.
  def in_chroot(version)
    capture("bin/matrix", "run", version, "env", "SONDE_TEST_MATRIX=inside", "SONDE_TEST_C=0", "bin/test", *@words,
            limit: MATRIX_LIMIT)
  end

  def judge(version, out, status, seconds)
    return unavailable(version, out) if status == UNAVAILABLE

    passed, failed, skipped = sums(out)
    failed = 1 if status != 0 && failed.zero? || passed.zero?
    reasons = out.scan(/^skipped: (.*?): (.*)$/).map { |where, why| ["Ruby #{version}: #{where}", why] }
    # The inner run names its skips in groups; the number is its own.
    @skipped += skipped - reasons.size
    @unsteady.concat(out.scan(/^unsteady: (.*?): (.*)$/).map { |where, why| ["Ruby #{version}: #{where}", why] })
    named = out.scan(/^failed: (.*?): (.*)$/).map { |where, why| ["Ruby #{version}: #{where}", why] }
    named << ["Ruby #{version}", "ended with #{status}"] if named.empty? && failed.positive?
    @failures.concat(named)
    # Of a run that came to its end, what failed is enough: the whole would hide it.
    out = out.lines.grep(/\A(?:FAILED|    )/).join unless named.empty? || sums(out).sum.zero?
    count("Ruby #{version}", passed, failed, reasons, seconds, out)
  end

  def unavailable(version, out)
    reason = out.lines.grep(/cannot be had/).last.to_s.strip
    return skip("Ruby #{version}", reason) unless ENV["CI"] && MUST_RUN.include?(version)

    @failures << ["Ruby #{version}", reason]
    count("Ruby #{version}", 0, 1, [], 0, out)
  end

  def skip(where, reason)
    count(where, 0, 0, [[where, reason]], 0, "")
  end

  def sums(out)
    (out.scan(SUMS).last || [0, 0, 0]).map(&:to_i)
  end

  # Output and exit status (or the signal's name) of a command; a hung one is killed with all its children.
  def capture(*command, limit: LIMIT)
    log = File.join(@dir, "log #{Thread.current.object_id}")
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    # bin/test has compiled the extension: tests that need it must not skip.
    env = { "SONDE_REQUIRE_EXTENSION" => ENV["SONDE_REQUIRE_EXTENSION"] || "1" }
    pid = Process.spawn(env, *command, chdir: ROOT, in: File::NULL, %i[out err] => log, pgroup: true)
    status = wait(pid, began + limit)
    out = File.read(log, encoding: "UTF-8").scrub
    [out, status, Process.clock_gettime(Process::CLOCK_MONOTONIC) - began]
  end

  def wait(pid, deadline)
    loop do
      _, status = Process.wait2(pid, Process::WNOHANG)
      return status.exitstatus || "SIG#{Signal.signame(status.termsig)}" if status
      break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.02
    end
    Process.kill(:KILL, -pid)
    Process.wait(pid)
    "hung"
  end

  def count(name, passed, failed, skips, seconds, out)
    @passed += passed
    @failed += failed
    @skipped += skips.size
    @reasons.concat(skips)
    puts format("%-6s %-48s %4d passed%s%s %6.1f s", failed.zero? ? "ok" : "FAILED", name, passed,
                failed.zero? ? "" : ", #{failed} failed", skips.empty? ? "" : ", #{skips.size} skipped", seconds)
    puts out.lines.last(200).map { |line| "    #{line}" } unless failed.zero?
    $stdout.flush
  end

  def report
    puts
    @reasons.group_by(&:last).each do |reason, skips|
      names = skips.map(&:first)
      shown = names.size > 3 ? "#{names.first(3).join(", ")} and #{names.size - 3} more" : names.join(", ")
      puts "skipped: #{shown}: #{reason.gsub(/\s+/, " ")}"
    end
    { "unsteady" => @unsteady, "failed" => @failures }.each do |what, list|
      list.each { |name, message| puts "#{what}: #{name}: #{message.gsub(/\s+/, " ")[0, 600]}" }
    end
    puts "#{@passed} passed, #{@failed} failed, #{@skipped} skipped"
  end
end

exit(Suite.new(ARGV).run ? 0 : 1)
