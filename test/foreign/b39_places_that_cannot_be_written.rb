# frozen_string_literal: true

# In containers with a read-only file system applications did not start, because something that came with the profiler
# made a directory. (/proc is a place where even root cannot write.)
# Right: the application runs as ever. What `sonde run` itself does in such places is in run_cli_test.rb.
require_relative "support"
require "open3"
require "rbconfig"

CODE = "x = 100_000.times.sum { |i| i.to_s.size }; print x; exit 5"
WANTED = 100_000.times.sum { |i| i.to_s.size }.to_s
PLACES = {
  "the working directory" => [{}, { chdir: "/proc/self" }], "HOME" => [{ "HOME" => "/proc/self" }, {}],
  "no HOME" => [{ "HOME" => nil }, {}], "TMPDIR" => [{ "TMPDIR" => "/proc/self/none", "TMP" => nil }, {}],
  "all of them" => [{ "HOME" => "/proc/self", "TMPDIR" => "/proc/none" }, { chdir: "/proc/self" }],
  "XDG" => [{ "XDG_RUNTIME_DIR" => "/proc/self", "XDG_CACHE_HOME" => "/proc/self" }, {}]
}.freeze

Foreign.start
bad = PLACES.map do |what, (environment, options)|
  environment = environment.merge("FOREIGN_PROFILE" => nil)
  out, err, status = Open3.capture3(environment, RbConfig.ruby, *Foreign.child(CODE), **options)
  next if status.exitstatus == 5 && out == WANTED && err.empty?

  "#{what}: #{status}, #{out[0, 40].inspect}, #{err.lines.first(3).join}"
end
Foreign.stop
Foreign.verdict(bad)
