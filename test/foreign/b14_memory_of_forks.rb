# frozen_string_literal: true

# The memory of a worker that forks for every job grew with the number of jobs, in the master and in each child, while
# it was profiled: what a fork copies was neither used nor freed.
# Right: it is level.
require_relative "support"

LIMIT = 6000 # kilobytes

# The memory of each of so many children.
def jobs(count)
  Array.new(count) do
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      3000.times { |i| "x#{i}" }
      writer.write(Foreign.rss)
      writer.close
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    reader.read.to_i.tap { reader.close }
  end
end

def measured
  GC.start
  [Foreign.rss, jobs(15).sum / 15]
end

count = Foreign.size("FOREIGN_JOBS", 300)
Foreign.start
jobs(count / 5)
before = measured
jobs(count)
after = measured
Foreign.stop
grown = before.zip(after).map { |one, other| other - one }
Foreign.verdict(("after #{count} jobs: master +#{grown[0]} kB, each child +#{grown[1]} kB" if grown.max >= LIMIT))
