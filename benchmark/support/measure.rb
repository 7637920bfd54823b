# frozen_string_literal: true

# What the benchmarks share: clocks, statistics, a table. Loads no part of Sonde.
module Measure
  SHORT = ARGV.delete("--short") ? true : false

  module_function

  # The full form, or the one-second form.
  def full_or_short(full, short)
    SHORT ? short : full
  end

  def monotonic
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def process_cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def median(values)
    sorted = values.sort
    middle = sorted.size / 2
    sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
  end

  def mean(values)
    values.sum / values.size.to_f
  end

  # Half the width of the 95 % interval of the mean.
  def margin(values)
    return Float::INFINITY if values.size < 2

    centre = mean(values)
    variance = values.sum { |value| (value - centre)**2 } / (values.size - 1)
    quantile_of_student(values.size - 1) * Math.sqrt(variance / values.size)
  end

  # The two-sided 95 % quantile; a series in 1/n, good to a per cent from 2 degrees of freedom on.
  def quantile_of_student(degrees)
    z = 1.959964
    z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
  end

  # Units of work for each CPU second of the whole process, Sonde's own thread included.
  def speed(load, seconds)
    cpu = process_cpu
    done = load.run(seconds)
    done / (process_cpu - cpu)
  end

  # [speed without, speed with, what else the block answers]. The block runs the load with Sonde and answers the latter
  # two. Without first in one pair, with first in the next: what drifts is then in both.
  def pair(number, load, seconds)
    return [speed(load, seconds), *yield] if number.even?

    with, seen = yield
    [speed(load, seconds), with, seen]
  end

  def heading(text)
    puts
    puts text
  end

  # Calls the block below so many frames of a Ruby method each.
  def at_depth(depth, &block)
    depth > 1 ? at_depth(depth - 1, &block) : block.call
  end
end
