# frozen_string_literal: true

# Crashes and wrong frames where a stack was read in the middle of compiled code, which does not keep the frames in
# memory up to date. To be run with --yjit too.
# Right: the same result, and leaf, middle and raiser in the profile, with lines.
require_relative "support"

Point = Struct.new(:x, :y) do
  def plus(other)
    Point.new(x + other.x, y + other.y)
  end
end

def leaf(number, *rest, key: 1, &block)
  block ? block.call(number + key) : number + key + rest.size
end

def middle(number)
  leaf(number) { |value| value + leaf(1, 2, 3, key: 4) }
rescue StandardError
  0
ensure
  number.succ
end

def raiser(number)
  raise ArgumentError, "x" if (number % 3).zero?

  number
rescue ArgumentError
  -1
end

TURNS = Foreign.size("FOREIGN_TURNS", 600_000)
Foreign.start
sum = 0
TURNS.times do |i|
  sum += middle(i) + raiser(i)
  sum ^= Point.new(i, i).plus(Point.new(1, 2)).y if (i & 15).zero?
end
Foreign.stop
expected = 0
TURNS.times do |i|
  expected += (i + 1 + 7) + ((i % 3).zero? ? -1 : i)
  expected ^= i + 2 if (i & 15).zero?
end
Foreign.verdict(("computed #{sum}, expected #{expected}" unless sum == expected))
