# frozen_string_literal: true

require_relative "../test_helper"
require "open3"
require "rbconfig"

# The long forms of both: test/support/stress.rb and test/support/exits.rb with larger numbers.
class StressTest < Minitest::Test
  include TestHelper

  def run_support(script, *arguments)
    command = [RbConfig.ruby, "-w", "-Ilib", "test/support/#{script}", *arguments]
    out, status = Open3.capture2e(*command, chdir: ROOT, stdin_data: "")
    assert status.success?, "#{script} #{arguments.join(" ")}: #{status}\n#{out}"
    out
  end

  def test_ten_seconds_of_everything_at_once
    need_extension
    assert_match(/all right$/, run_support("stress.rb", ENV["SONDE_STRESS_SECONDS"] || "10"))
  end

  # Finalizers run when the VM has already cleared its hooks and begun to free objects.
  def test_a_finalizer_at_the_end_of_the_process_may_profile
    need_extension
    code = <<~'RUBY'
      require "sonde"
      modes = RUBY_VERSION < "3.1" ? %i[cpu wall] : %i[cpu wall alloc]
      work = proc { Sonde.start(modes: modes); 200_000.times(&:to_s); print Sonde.running? }
      ObjectSpace.define_finalizer(Object.new, work)
    RUBY
    out, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-w", "-Ilib", "-e", code, chdir: ROOT)
    assert_equal ["true", true], [out, status.success?]
  end

  def test_twenty_processes_end_cleanly_while_profiled
    need_extension
    assert_match(/20 of 20 clean/, run_support("exits.rb", "20"))
  end
end
