# frozen_string_literal: true

# Programs with hardly any file descriptors, memory, stack, or room for files: what a profiler needs beside them must
# not be what breaks them. Each runs here as a child of a profiled process, with the limit of its own.
require_relative "support"
require "open3"
require "rbconfig"

CODE = "x = Array.new(20_000) { |i| i.to_s }.join.size; Thread.new { x += 1 }.join; print x"
# As much as the program itself needs, and little more.
LIMITS = { "files" => { rlimit_nofile: 12 }, "memory" => { rlimit_as: 700 << 20 }, "stack" => { rlimit_stack: 1 << 20 },
           "size of a file" => { rlimit_fsize: 0 }, "a small size of a file" => { rlimit_fsize: 4096 },
           "size of a core" => { rlimit_core: 0 }, "locked memory" => { rlimit_memlock: 0 },
           "priority" => { rlimit_nice: 0, rlimit_rtprio: 0 } }.freeze

Foreign.start
bad = LIMITS.map do |what, limit|
  out, err, status = Open3.capture3({ "FOREIGN_PROFILE" => nil }, RbConfig.ruby, *Foreign.child(CODE), **limit)
  next if status.success? && out == "88891" && err.empty?

  "#{what}: #{status}, #{out.inspect}, #{err[0, 300]}"
end
Foreign.stop
Foreign.verdict(bad)
