# frozen_string_literal: true

require "objspace"

# Loads for alloc.rb, each with its own account of what its sites allocated.
module AllocAccuracy
  Point = Struct.new(:x, :y, :z)

  # Sites that make one object a call, whose size is known.
  class Load
    X = "x"

    def initialize(random)
      @random = random
      @counts = Hash.new(0)
    end

    # { "method" => [objects, bytes] }
    def truth
      @counts.map { |site, count| [name_of(site), [count, count * size_of(site)]] }.to_h
    end

    def finish; end

    private

    def until_past(seconds)
      finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      yield while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
    end

    def make(site, times)
      @counts[site] += times
      times.times { send(site) }
    end

    def name_of(site)
      "#{self.class.name}##{site}"
    end

    def size_of(site)
      (@sizes ||= {})[site] ||= ObjectSpace.memsize_of(send(site))
    end

    def compute(seconds)
      sum = 0
      until_past(seconds) { 100.times { |i| sum += i & 3 } }
      sum
    end
  end

  # 60, 30 and 10 per cent, one object at a time in random order.
  class Uniform < Load
    TITLE = "three sites, 60, 30 and 10 % of the objects"

    def run(seconds)
      until_past(seconds) do
        1000.times do
          drawn = @random.rand(100)
          site = drawn < 60 ? :small : drawn < 90 ? :text : :list
          @counts[site] += 1
          site == :small ? small : site == :text ? text : list
        end
      end
    end

    def small
      Object.new
    end

    def text
      X * 200
    end

    def list
      Array.new(50)
    end
  end

  # A millisecond of heavy allocation at one site, then nine of computing with a few objects at another.
  class Bursts < Load
    TITLE = "1 ms of heavy allocation, 9 ms of computing with a few objects"

    def run(seconds)
      until_past(seconds) do
        until_past(0.001 * (0.5 + @random.rand)) { make(:burst, 200) }
        make(:few, 30)
        compute(0.009 * (0.5 + @random.rand))
      end
    end

    def burst
      Object.new
    end

    def few
      Point.new(1, 2, 3)
    end
  end

  # Half of the objects in phases of work, half in a loop that computes between them.
  class Phases < Load
    TITLE = "dense and sparse loops of 2,000 objects each"

    def run(seconds)
      until_past(seconds) do
        make(:dense, 2000)
        2000.times do
          make(:sparse, 1)
          20.times { |i| i & 3 }
        end
      end
    end

    def dense
      Object.new
    end

    def sparse
      Object.new
    end
  end

  # Many tiny objects, and one in a hundred of 20 kB.
  class Huge < Load
    TITLE = "many tiny objects and a few of 20 kB"

    def run(seconds)
      until_past(seconds) do
        100.times do
          make(:tiny, 80 + @random.rand(40))
          make(:huge, 1)
        end
      end
    end

    def tiny
      Object.new
    end

    def huge
      X * 20_000
    end
  end

  # Slices of one large string share its buffer: they are as large as their slots.
  class Shared < Load
    TITLE = "strings that share a buffer, and strings that do not"
    LARGE = "y" * 100_000

    def run(seconds)
      until_past(seconds) do
        make(:slice, 70 + @random.rand(20))
        make(:copy, 20)
      end
    end

    def slice
      LARGE.byteslice(5_000, 95_000)
    end

    def copy
      X * 2_000
    end
  end

  # Four threads that allocate, each at its own pace, and four that mostly sleep.
  class Threads < Load
    TITLE = "8 threads, 4 of them mostly asleep"
    PACES = { one: 40, two: 20, three: 10, four: 5 }.freeze

    def run(seconds)
      workers = PACES.map { |site, pace| Thread.new { work(site, pace, seconds) } }
      sleepers = Array.new(4) { Thread.new { doze(seconds) } }
      @parts = (workers + sleepers).map(&:value)
      @parts.each { |part| part.each { |site, count| @counts[site] += count } }
    end

    def one
      Object.new
    end

    def two
      Object.new
    end

    def three
      Object.new
    end

    def four
      Object.new
    end

    def rarely
      Object.new
    end

    private

    def work(site, pace, seconds)
      count = 0
      until_past(seconds) do
        pace.times { send(site) }
        count += pace
        200.times { |i| i & 3 }
      end
      { site => count }
    end

    def doze(seconds)
      count = 0
      until_past(seconds) do
        20.times { rarely }
        count += 20
        sleep(0.002)
      end
      { rarely: count }
    end
  end

  # A large parse (one long call of a C function) and Ruby code beside it. What a parse makes is counted beforehand.
  class Parse < Load
    TITLE = "JSON: one large parse and Ruby code"

    def initialize(random)
      require "json"
      super
      row = { "id" => 1, "name" => "some name", "tags" => %w[a b c], "nested" => { "x" => 1.5, "y" => [1, 2, 3] } }
      @document = JSON.generate(Array.new(1500, row))
      @objects = objects_of { parse }
      @size = nil
    end

    def run(seconds)
      until_past(seconds) do
        parse
        @parses = @parses.to_i + 1
        make(:ruby, 8_000 + @random.rand(8_000))
      end
    end

    # The bytes of a parse are not known beforehand: only the objects are judged.
    def truth
      super.merge(name_of(:parse) => [@parses * @objects, 0])
           .map { |name, (objects, _)| [name, [objects, nil]] }.to_h
    end

    def parse
      JSON.parse(@document)
    end

    def ruby
      Object.new
    end

    private

    def objects_of
      2.times { yield }
      before = GC.stat(:total_allocated_objects)
      yield
      GC.stat(:total_allocated_objects) - before
    end
  end

  LOADS = { "uniform" => Uniform, "bursts" => Bursts, "phases" => Phases, "huge" => Huge, "shared" => Shared,
            "threads" => Threads, "parse" => Parse }.freeze
end
