# frozen_string_literal: true

# A container or chroot without /proc: what a profiler reads there is missing. The program runs in a child with a mount
# table of its own.
require_relative "support"
require "open3"
require "rbconfig"

CODE = "x = Array.new(20_000) { |i| i.to_s }.join.size; Thread.new { x += 1 }.join; " \
       "x += Process.wait2(fork { exit!(1) }).last.exitstatus; print x, File.exist?('/proc/self')"
WITHOUT = ["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && umount -l /proc && exec \"$@\"", "sh"].freeze

def without_proc(*command)
  Open3.capture3({ "FOREIGN_PROFILE" => nil }, *WITHOUT, *command)
rescue SystemCallError => e
  ["", e.message, nil]
end

_, _, possible = without_proc("true")
unless possible && possible.success?
  puts "SKIP: /proc cannot be taken away here (needs root, and does not work in a chroot)"
  exit
end
Foreign.start
out, err, status = without_proc(RbConfig.ruby, *Foreign.child(CODE))
Foreign.stop
Foreign.verdict(("#{status}, #{out.inspect}, #{err[0, 300]}" unless out == "88892false" && err.empty?))
