# frozen_string_literal: true

# Programs that were over before the first sample, or only slept: the profiler panicked over an empty result, or ended
# early. Each runs here as a child of a profiled process (each below `sonde run` of its own: run_cli_test.rb).
# Right: each has its own status and output.
require_relative "support"
require "open3"
require "rbconfig"

CASES = {
  "an empty program" => ["", 0, ""], "one that prints" => ["print 'hi'", 0, "hi"], "exit 7" => ["exit 7", 7, ""],
  "exit!" => ["exit!(3)", 3, ""], "one that only sleeps" => ["sleep 0.2; print 1", 0, "1"],
  "a closed output" => ["$stdout.close", 0, ""], "one that raises" => ["raise 'planned'", 1, ""],
  "SIGTERM to itself" => ["Process.kill(:TERM, $$); sleep 60", "TERM", ""],
  "three hundred arguments" => ["print ARGV.size", 0, "300"]
}.freeze

def ending(status)
  status.signaled? ? Signal.signame(status.termsig) : status.exitstatus
end

Foreign.start
bad = CASES.map do |what, (code, status, output)|
  arguments = what.start_with?("three") ? Array.new(300) { |i| "a b #{i}" } : []
  environment = { "FOREIGN_PROFILE" => nil }
  out, err, ended = Open3.capture3(environment, RbConfig.ruby, *Foreign.child(code), *arguments)
  next if ending(ended) == status && out == output && err !~ /panic|\[BUG\]|NoMethodError/

  "#{what}: #{ending(ended)} instead of #{status}, #{out.inspect}, #{err.lines.first}"
end
_, _, missing = Open3.capture3(RbConfig.ruby, "/no/such/file.rb")
Foreign.stop
Foreign.verdict(bad, ("a missing program succeeds" if missing.success?))
