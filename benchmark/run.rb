# frozen_string_literal: true

# Builds Sonde for measuring and runs the benchmarks: see README.md beside this file.
#
#   ruby benchmark/run.rb [--short] [NAME...]
require "etc"
require "open3"
require "rbconfig"

ROOT = File.expand_path("..", __dir__)
NAMES = %w[sample_cost startup idle_threads large_profile overhead alloc].freeze

short = ARGV.delete("--short")
unknown = ARGV - NAMES
abort "unknown: #{unknown.join(", ")} (there are: #{NAMES.join(", ")})" unless unknown.empty?

Dir.chdir(ROOT)
testing = { "SONDE_TESTING" => "1", "SONDE_REQUIRE_EXTENSION" => "1" }
messages, status = Open3.capture2e(testing, RbConfig.ruby, "-rrake", "-e", "Rake.application.run(%w[--silent compile])")
abort "#{messages}benchmark: Sonde does not compile (see above)" unless status.success?
library = File.join(ROOT, "tmp", "#{RUBY_VERSION}_#{RUBY_PLATFORM}_testing", "lib")

puts RUBY_DESCRIPTION
puts "#{Etc.uname.values_at(:sysname, :release, :machine).join(" ")}, #{Etc.nprocessors} processors, " \
     "load #{File.read("/proc/loadavg").split.first}, #{Time.now.utc.strftime("%Y-%m-%d")}"
$stdout.flush
(ARGV.empty? ? NAMES : ARGV).each do |name|
  system(RbConfig.ruby, "-w", "-I#{library}", "benchmark/#{name}.rb", *short, exception: true)
end
