# frozen_string_literal: true

require "open3"
require "rbconfig"

# A build with SONDE_TESTING for this Ruby, beside a copy of lib/: made once for all tests.
module TestingBuild
  ROOT = File.expand_path("../..", __dir__)

  # @return [String] the directory for -I
  def self.library
    @library ||= begin
      variables = { "SONDE_TESTING" => "1", "SONDE_REQUIRE_EXTENSION" => "1", "MAKEFLAGS" => nil, "RUBYOPT" => nil }
      rake = ["-rrake", "-e", "Rake.application.run(%w[--silent compile])"]
      messages, status = Open3.capture2e(variables, RbConfig.ruby, *rake, chdir: ROOT)
      raise "Sonde does not compile for testing: #{messages}" unless status.success?

      File.join(ROOT, "tmp", "#{RUBY_VERSION}_#{RUBY_PLATFORM}_testing", "lib")
    end
  end
end
