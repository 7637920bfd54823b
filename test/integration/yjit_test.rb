# frozen_string_literal: true

require_relative "../test_helper"
require "json"
require "open3"
require "rbconfig"

# Lines in compiled code: where the VM knows none for the top frame (3.3 and 3.4 say 0, 3.1 may keep an old position),
# the method's first line is shown, never a line outside of the method.
class YjitTest < Minitest::Test
  include TestHelper

  PROGRAM = <<~'RUBY'
    require "json"
    require "sonde"
    $LOAD_PATH.unshift("test")
    require "support/pprof_decoder"

    module Compiled
      module_function

      def clock
        Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      end

      def add(number)
        number + 1
      end

      def work(finish)
        total = 0
        while clock < finish
          100.times do |i|
            total += add(i)
          end
          total = add(
            total
          )
        end
        total
      end
    end

    Compiled.work(Compiled.clock + 0.3)
    profile = Sonde.profile { Compiled.work(Compiled.clock + 1) }
    frames = PprofDecoder.decode(profile.to_pprof).samples.flat_map(&:frames)
    own = frames.select { |frame| frame.name.include?("Compiled") }
    puts JSON.generate(yjit: RubyVM::YJIT.enabled?, lines: own.map { |frame| [frame.name, frame.line] }.uniq)
  RUBY
  # First and last line of each method of the program.
  METHODS = { "clock" => [9, 11], "add" => [13, 15], "work" => [17, 29] }.freeze

  def test_lines_are_inside_their_methods
    need_extension
    command = [RbConfig.ruby, "-w", "--yjit", "-Ilib", "-e", PROGRAM]
    out, err, status = Open3.capture3(clean_environment, *command, chdir: ROOT)
    skip "this Ruby has no YJIT" if !status.success? && err.match?(/yjit/i)
    assert status.success?, err
    result = JSON.parse(out)
    assert result["yjit"]
    lines = result["lines"]
    assert_operator lines.size, :>=, 3, "hardly anything was seen: #{lines}"
    outside = lines.reject do |name, line|
      first, last = METHODS.fetch(name[/\w+\z/])
      (first..last).cover?(line)
    end
    assert_empty outside
  end
end
