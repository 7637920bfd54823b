# frozen_string_literal: true

# A worker that forks for every job: once in thousands of jobs a child stood still right after the fork or at its end,
# waiting for a lock that a thread of the parent's had held.
# Right: it never does. FOREIGN_JOBS=5000 is the long form; also worth a try on musl and below jemalloc (neither is part
# of the tests).
require_relative "support"

LIMIT = 60 # seconds for one child; the machine may be busy

# The end of one child: its status, or nil if it stands still.
def status_of(pid)
  limit = Foreign.now + LIMIT
  sleep 0.002 until (done = Process.wait2(pid, Process::WNOHANG)) || Foreign.now > limit
  return done[1].exitstatus if done

  Process.kill(:KILL, pid)
  Process.wait(pid)
  nil
end

Foreign.start
done = false
lock = Mutex.new
noises = [-> { Array.new(200) { |i| "n#{i}" * 20 }.join.size },
          -> { lock.synchronize { Hash.new { |hash, key| hash[key] = key.to_s }.values_at(*1..200) } },
          -> { Thread.new { Thread.current.name = "t#{rand(99)}" }.value }]
threads = noises.map { |noise| Thread.new { noise.call until done } }
wrong = Array.new(Foreign.size("FOREIGN_JOBS", 60)) do |i|
  pid = fork do
    Array.new(2000) { |j| "job #{i} #{j}" }
    GC.start if (i % 10).zero?
    exit(i % 7)
  end
  status = status_of(pid)
  "job #{i} ended with #{status.inspect}" unless status == i % 7
end
done = true
threads.each(&:join)
Foreign.stop
Foreign.verdict(wrong)
