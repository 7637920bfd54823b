# frozen_string_literal: true

module Sonde
  # What to profile, and how: a frozen value. Every wrong option raises ArgumentError with its name, the value, and what
  # is allowed.
  class Configuration
    MODES = %i[cpu wall alloc heap].freeze
    RATES = (1..1000).freeze
    FRAMES = (10..16_000).freeze
    MEMORY = (1_048_576..1_073_741_824).freeze

    BUDGETS = (0.1..100).freeze # percent of one CPU
    ALWAYS_ON_BUDGET = 0.5 # of a profiler that stays on

    DEFAULTS = { modes: %i[cpu wall].freeze, rate: 100, max_frames: 2000, memory_limit: 67_108_864,
                 budget: 1.0 }.freeze

    # @return [Array<Symbol>] what is measured
    attr_reader :modes
    # @return [Float] samples each second, on average
    attr_reader :rate
    # @return [Integer] frames of a stack that are kept; of a deeper one, both ends
    attr_reader :max_frames
    # @return [Integer] bytes that samples may take until the profile is fetched
    attr_reader :memory_limit
    # @return [Float] percent of one CPU that Sonde may use
    attr_reader :budget

    def initialize(**options)
      options.each do |name, value|
        next if DEFAULTS.key?(name)

        raise ArgumentError, "unknown option #{name}: #{value.inspect} (allowed: #{DEFAULTS.keys.join(", ")})"
      end
      values = DEFAULTS.merge(options)
      @modes = check_modes(values[:modes])
      @rate = check_number(:rate, values[:rate], RATES, "samples each second")
      @max_frames = check_integer(:max_frames, values[:max_frames], FRAMES)
      @memory_limit = check_integer(:memory_limit, values[:memory_limit], MEMORY)
      @budget = check_number(:budget, values[:budget], BUDGETS, "percent of one CPU")
      freeze
    end

    private

    def check_modes(value)
      modes = value.is_a?(Array) ? value : [value]
      valid = !modes.empty? && modes.all? { |mode| MODES.include?(mode) } && modes.uniq == modes
      wrong(:modes, value, "one or more of #{MODES.map(&:inspect).join(", ")}") unless valid
      modes.dup.freeze
    end

    def check_number(name, value, range, unit)
      # NaN is in no range.
      valid = (value.is_a?(Integer) || value.is_a?(Float) || value.is_a?(Rational)) && range.cover?(value)
      wrong(name, value, "#{range.begin} to #{range.end} #{unit}") unless valid
      value.to_f
    end

    def check_integer(name, value, range)
      valid = value.is_a?(Integer) && range.cover?(value)
      wrong(name, value, "an Integer from #{range.first} to #{range.last}") unless valid
      value
    end

    def wrong(name, value, allowed)
      raise ArgumentError, "wrong option #{name}: #{value.inspect} (allowed: #{allowed})"
    end
  end
end
