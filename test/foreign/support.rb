# frozen_string_literal: true

# What the programs of this folder share. Each does something on which profilers have come to grief, prints OK or what
# is wrong, and can be run by hand in three ways:
#
#   ruby test/foreign/b04_directory_listings.rb                  plain
#   exe/sonde run -- ruby test/foreign/b04_directory_listings.rb  wrapped
#   FOREIGN=inside ruby test/foreign/b04_directory_listings.rb    profiled by itself, from Foreign.start to Foreign.stop
#
# FOREIGN_PROFILE=FILE says where a program that profiles itself saves that. What the profile is judged by and differs
# from run to run (times, process numbers) goes to FOREIGN_NOTES=FILE, not to the output: that must be the same always.
module Foreign
  INSIDE = ENV["FOREIGN"] == "inside"
  SUPPORT = __FILE__

  require_relative "../../lib/sonde" if INSIDE

  module_function

  def start(**options)
    Sonde.start(**options) if INSIDE
  end

  def stop
    return unless INSIDE

    profile = Sonde.stop
    profile.save(ENV["FOREIGN_PROFILE"]) if profile && ENV["FOREIGN_PROFILE"]
  end

  # How often, how much: smaller in the tests than by hand.
  def size(name, normally)
    Integer(ENV[name] || normally)
  end

  def note(key, value)
    File.open(ENV["FOREIGN_NOTES"], "a") { |file| file.puts "#{key} #{value}" } if ENV["FOREIGN_NOTES"]
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Uses so many seconds of CPU.
  def burn(seconds)
    limit = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) + seconds
    nil while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < limit
  end

  # Kilobytes of memory that are in use.
  def rss
    File.read("/proc/self/status")[/VmRSS:\s+(\d+)/, 1].to_i
  end

  # Options for a Ruby that does as this one does: plain, or profiled by itself.
  def child(code)
    return ["--disable-gems", "-e", code] unless INSIDE

    ["--disable-gems", "-r", SUPPORT, "-e", "Foreign.start; at_exit { Foreign.stop }; #{code}"]
  end

  # Ends the program with its verdict: nil and empty lists among the problems are none.
  def verdict(*problems)
    found = problems.flatten.compact
    puts found.empty? ? "OK" : found
  end
end
