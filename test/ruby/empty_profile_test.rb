# frozen_string_literal: true

require "test_helper"

class EmptyProfileTest < Minitest::Test
  def test_it_is_a_profile_without_samples
    profile = Sonde::Profile.new(Sonde::EmptyProfile.new(1_700_000_000_123_456_789, 2_500_000_000, "nothing here"))
    assert_equal({}, profile.totals)
    assert_equal [], profile.top
    assert_equal [], profile.sample_types
    assert_equal 0, profile.sample_count
    assert_equal ["nothing here"], profile.comments
    assert_equal 1_700_000_000_123_456_789, profile.start.to_i * 1_000_000_000 + profile.start.nsec
    assert_equal 2.5, profile.duration
    assert_equal profile.start + Rational(5, 2), profile.finish
  end

  def test_its_bytes_are_a_valid_profile
    need_reader
    bytes = Sonde::EmptyProfile.new(1_700_000_000_123_456_789, 2_500_000_000, "a reason, with an é").encode
    native = Sonde::Native::Profile.read(bytes)
    assert_equal ["a reason, with an é"], native.comments.map { |comment| comment.dup.force_encoding("UTF-8") }
    assert_equal 1_700_000_000_123_456_789, native.start_ns
    assert_equal 2_500_000_000, native.duration_ns
  end

  include TestHelper
  alias need_reader need_extension
end
