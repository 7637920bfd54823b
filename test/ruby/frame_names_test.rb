# frozen_string_literal: true

require "test_helper"
require "support/pprof_decoder"

# What code is called in a profile: blocks, and methods that are made of blocks.
class FrameNamesTest < Minitest::Test
  include TestHelper

  # Up to 3.2 Sonde reads the stack itself, and knows of each frame which method and which block it is. Later the VM's
  # own function shows blocks as the method they are in, and a method that is a block as the block.
  READ_BY_SONDE = Gem::Version.new(RUBY_VERSION) < Gem::Version.new("3.3")

  def setup
    need_extension
  end

  def names(&block)
    profile = PprofDecoder.decode(Sonde.profile(rate: 1000, &block).to_pprof)
    profile.samples.flat_map { |sample| sample.frames.map(&:name) }.uniq
  end

  class Made
    %w[red green blue].each do |colour|
      define_method(colour) { |test| test.burn(0.03) }
    end
    define_method(:plain) { |test| test.burn(0.03) }
    define_method(:with_blocks) { |test| [1].each { [1].each { test.burn(0.03) } } }
    define_method(:rescuing) do |test|
      begin
        raise "on purpose"
      rescue RuntimeError
        [1].each { test.burn(0.03) }
      end
    end

    def deep(test)
      [1].each { [1].each { test.burn(0.03) } }
    end

    # One block, the body of a method and a block at once.
    both = ->(test) { test.burn(0.03) }
    define_method(:of_a_lambda, &both)
    BOTH = both
  end

  def test_methods_of_one_block_have_their_own_names
    made = Made.new
    seen = names { 3.times { made.red(self) && made.green(self) && made.blue(self) } }
    if READ_BY_SONDE
      %w[red green blue].each { |colour| assert_includes seen, "FrameNamesTest::Made##{colour}" }
      assert_empty seen.grep(/<class:Made>/)
    else
      assert_empty seen.grep(/red|green|blue/)
      assert_includes seen, "block (2 levels) in <class:Made>"
    end
  end

  def test_blocks_in_a_method_that_is_a_block_are_counted_from_it
    seen = names { 3.times { Made.new.plain(self) && Made.new.with_blocks(self) && Made.new.rescuing(self) } }
    if READ_BY_SONDE
      ["FrameNamesTest::Made#plain", "FrameNamesTest::Made#with_blocks", "block in FrameNamesTest::Made#with_blocks",
       "block (2 levels) in FrameNamesTest::Made#with_blocks", "rescue in FrameNamesTest::Made#rescuing",
       "block in FrameNamesTest::Made#rescuing"].each { |name| assert_includes seen, name }
      assert_empty seen.grep(/<class:Made>/)
    else
      ["block in <class:Made>", "block (2 levels) in <class:Made>", "block (3 levels) in <class:Made>"]
        .each { |name| assert_includes seen, name }
    end
  end

  def test_a_lambda_is_only_named_as_the_method_where_it_is_one
    method, code = names { 3.times { Made.new.of_a_lambda(self) } }, names { 3.times { Made::BOTH.call(self) } }
    assert_includes method, READ_BY_SONDE ? "FrameNamesTest::Made#of_a_lambda" : "block in <class:Made>"
    assert_includes code, "block in <class:Made>"
    assert_empty code.grep(/of_a_lambda/)
  end

  def test_blocks_in_a_method_say_how_deep_they_are
    seen = names { 3.times { Made.new.deep(self) } }
    assert_includes seen, "FrameNamesTest::Made#deep"
    blocks = ["block in FrameNamesTest::Made#deep", "block (2 levels) in FrameNamesTest::Made#deep"]
    assert_equal READ_BY_SONDE ? blocks : [], seen.grep(/block.*Made#deep/).sort_by(&:size)
  end

  def test_a_name_with_a_zero_byte_does_no_harm
    odd = Class.new { define_method("odd\0name") { |test| [1].each { test.burn(0.03) } } }
    seen = names { 3.times { odd.new.send("odd\0name", self) } }
    assert_includes seen, "TestHelper#burn"
    assert_empty(seen.select { |name| name.empty? || name == "(unnamed)" })
  end
end
