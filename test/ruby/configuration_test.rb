# frozen_string_literal: true

require "test_helper"

class ConfigurationTest < Minitest::Test
  def test_defaults
    configuration = Sonde::Configuration.new
    assert_equal %i[cpu wall], configuration.modes
    assert_equal 100.0, configuration.rate
    assert_instance_of Float, configuration.rate
    assert_equal 2000, configuration.max_frames
    assert_equal 67_108_864, configuration.memory_limit
    assert configuration.frozen?
  end

  def test_one_mode_needs_no_array
    assert_equal [:wall], Sonde::Configuration.new(modes: :wall).modes
  end

  def test_wrong_options_name_the_option_the_value_and_what_is_allowed
    {
      { modes: [:cpu, :gpu] } =>
        /wrong option modes: \[:cpu, :gpu\] \(allowed: one or more of :cpu, :wall, :alloc, :heap\)/,
      { modes: [] } => /modes: \[\]/,
      { modes: %i[cpu cpu] } => /modes/,
      { modes: nil } => /modes: nil/,
      { budget: 0 } => /budget: 0 \(allowed: 0.1 to 100 percent of one CPU\)/,
      { rate: 0 } => /rate: 0 \(allowed: 1 to 1000/,
      { rate: 1001 } => /rate: 1001/,
      { rate: Float::NAN } => /rate: NaN/,
      { rate: "100" } => /rate: "100"/,
      { rate: nil } => /rate: nil/,
      { max_frames: 9 } => /max_frames: 9 \(allowed: an Integer from 10 to 16000\)/,
      { max_frames: 20.0 } => /max_frames: 20.0/,
      { memory_limit: 1 } => /memory_limit: 1 \(/,
      { speed: 3 } => /unknown option speed: 3 \(allowed: modes, rate, max_frames, memory_limit, budget\)/
    }.each do |options, message|
      error = assert_raises(ArgumentError) { Sonde::Configuration.new(**options) }
      assert_match message, error.message
    end
  end
end
