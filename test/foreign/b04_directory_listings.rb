# frozen_string_literal: true

# A program listed directories on a network mount, and got some of the files or none, only while it was profiled. Slow
# file systems give up a listing when a signal comes, and Ruby before 3.4 takes that for the end of the list.
# Right: every listing is whole. (Local file systems are rarely interruptible; FOREIGN_SLOW_DIR names one that is.)
require_relative "support"
require "tmpdir"

FILES = Foreign.size("FOREIGN_FILES", 1500)
WANTED = [FILES, FILES, FILES, FILES + 2, true, false].freeze

def listings(directory)
  [Dir.children(directory).size, Dir.glob("#{directory}/f*").size, Dir.each_child(directory).count,
   Dir.entries(directory).size, Dir.exist?(directory), Dir.empty?(directory)]
end

Dir.mktmpdir("listings", ENV["FOREIGN_SLOW_DIR"]) do |directory|
  FILES.times { |i| File.write("#{directory}/f#{i}", "") }
  Foreign.start
  done = false
  busy = Thread.new do
    turns = 0
    Thread.pass if ((turns += 1) & 1023).zero? until done
  end
  seen = Array.new(Foreign.size("FOREIGN_LISTINGS", 60)) { listings(directory) }
  done = true
  busy.join
  Foreign.stop
  wrong = seen.reject { |one| one == WANTED }
  Foreign.verdict(("#{wrong.size} of #{seen.size} are wrong, such as #{wrong.first}" unless wrong.empty?))
end
