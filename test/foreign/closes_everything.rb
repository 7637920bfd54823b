# frozen_string_literal: true

# A daemon closes every descriptor that it did not open, changes into another directory, forgets its environment, and
# gives its name and output away. A profiler that had kept something open writes into whatever is opened next.
# Right: nothing of the program's is touched, and the profile is there all the same.
require_relative "support"
require "tmpdir"

def clean_up
  Dir.children("/proc/self/fd").map(&:to_i).select { |number| number > 2 }.each do |number|
    begin
      IO.for_fd(number, autoclose: false).close
    rescue SystemCallError, ArgumentError
      nil # the listing's own; and those that Ruby needs are refused
    end
  end
end

Foreign.start
Foreign.burn(0.1)
clean_up
Dir.mktmpdir do |directory|
  path = File.join(directory, "mine")
  mine = Array.new(8) { File.open(path, "w") }
  environment = ENV.to_h
  ENV.clear
  Dir.chdir(directory) { Foreign.burn(0.1) }
  $0 = "another name"
  ENV.replace(environment)
  Foreign.stop
  mine.each(&:close)
  $0 = __FILE__
  Foreign.verdict(("something wrote into the program's file" unless File.empty?(path)))
end
