# frozen_string_literal: true

# A test suite forked a few times and called Process.waitall, which never came back: the profiler had started a helper
# process, which was a child too.
# Right: a profiler has no child processes, and sends nobody SIGCHLD.
require_relative "support"
require "timeout"

def child_left?
  Process.wait(-1, Process::WNOHANG)
  true
rescue Errno::ECHILD
  false
end

problems = []
Foreign.start
problems << "there is a child before any was made" if child_left?
died = 0
trap("CHLD") { died += 1 }
begin
  Timeout.timeout(60) do
    mine = Array.new(4) { |i| fork { exit!(i) } }
    seen = Process.waitall
    problems << "waitall saw #{seen.size} children of 4" unless seen.map(&:first).sort == mine.sort
    statuses = seen.map { |_, status| status.exitstatus }.sort
    problems << "their statuses are #{statuses}" unless statuses == [0, 1, 2, 3]
  end
rescue Timeout::Error
  problems << "waitall hangs: there is a child that this program did not make"
end
trap("CHLD", "DEFAULT")
problems << "SIGCHLD came #{died} times for 4 children" if died > 4
Foreign.stop
problems << "there is a child after the stop" if child_left?
Foreign.verdict(problems)
