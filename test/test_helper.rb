# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))

require "minitest/autorun"
require "sonde"

module TestHelper
  ROOT = File.expand_path("..", __dir__)

  # Tests of what only the engine can do. Where it must be there (in CI), its absence is a failure.
  def need_extension
    return if Sonde.supported?

    flunk(Sonde.unsupported_reason) if ENV["SONDE_REQUIRE_EXTENSION"] == "1"
    skip(Sonde.unsupported_reason)
  end

  # A copy of the environment's effect on child processes, without what rake and Bundler add to it.
  def clean_environment
    { "RUBYOPT" => nil, "RUBYLIB" => nil, "BUNDLE_GEMFILE" => nil, "GEM_HOME" => nil, "GEM_PATH" => nil,
      "SONDE_REQUIRE_EXTENSION" => nil, "MAKEFLAGS" => nil, "MFLAGS" => nil }
  end

  # Uses CPU for so many seconds of it.
  def burn(seconds)
    finish = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
    count = 0
    count += 1 while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < finish
    count
  end
end
