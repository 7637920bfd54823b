# frozen_string_literal: true

# Children are followed by means of RUBYOPT: a path with a space in it broke every Ruby that was started, the user's own
# RUBYOPT and Bundler's got lost, and programs whose output is read by others had a line more in it. To be run below a
# copy of Sonde whose path has a space and a letter that is not ASCII.
# Right: not a byte more, and every child runs.
require_relative "support"
require "open3"
require "rbconfig"

RUBY = RbConfig.ruby
RUNS = {
  "a child" => [{}, [RUBY, "-e", "print 1"], {}],
  "with -w" => [{}, [RUBY, "-w", "-e", "print 1"], {}],
  "without gems" => [{}, [RUBY, *Foreign.child("print 1")], {}],
  "without anything" => [{}, [RUBY, "--disable=all", "-e", "print 1"], {}],
  "an empty environment" => [{ "PATH" => ENV["PATH"] }, [RUBY, "-e", "print 1"], { unsetenv_others: true }],
  "RUBYOPT of its own" => [{ "RUBYOPT" => "#{ENV["RUBYOPT"]} -W0" }, [RUBY, "-e", "print 1"], {}],
  "RUBYOPT taken away" => [{ "RUBYOPT" => nil, "RUBYLIB" => nil }, [RUBY, "-e", "print 1"], {}],
  "another directory" => [{}, [RUBY, "-w", *Foreign.child("print 1")], { chdir: "/" }],
  "through a shell" => [{}, ["sh", "-c", "exec \"$0\" -e 'print 1'", RUBY], {}],
  "its program from its input" => [{}, [RUBY], { stdin_data: "print 1" }],
  "libraries" => [{}, [RUBY, "-rset", "-rjson", "-e", "print 1"], {}],
  "another program" => [{}, ["sh", "-c", "printf 1"], {}]
}.freeze

Foreign.start
bad = RUNS.map do |what, (environment, command, options)|
  environment = environment.merge("FOREIGN_PROFILE" => nil)
  out, err, status = Open3.capture3(environment, *command, **options)
  next if status.success? && out == "1" && err.empty?

  "#{what}: #{status}, #{out.inspect}, #{err[0, 200].inspect}"
end
Foreign.stop
Foreign.verdict(bad)
