# frozen_string_literal: true

require "open3"
require "rbconfig"

module Accuracy
  # Under what the workloads run: compiled by YJIT, beside busy neighbours.
  module Conditions
    module_function

    # Whether this Ruby can run with --yjit (asked once, of another process).
    def yjit?
      return @yjit unless @yjit.nil?

      # Rubies without it may know the option, and say that they were not built with it.
      _, status = Open3.capture2e({ "RUBYOPT" => nil }, RbConfig.ruby, "--disable-gems", "--yjit", "-e",
                                  "exit(defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? 0 : 1)")
      @yjit = status.success?
    end

    def yjit_enabled?
      defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? true : false
    end

    # Processes that burn CPU without pause while the block runs. They end by themselves if this process is killed.
    def beside_neighbours(count)
      code = "parent = Process.ppid; i = 0; loop { i += 1; exit if (i & 0xfffff).zero? && Process.ppid != parent }"
      command = [RbConfig.ruby, "--disable-gems", "-e", code]
      pids = Array.new(count) { Process.spawn({ "RUBYOPT" => nil }, *command) }
      yield
    ensure
      pids.to_a.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    end
  end
end
