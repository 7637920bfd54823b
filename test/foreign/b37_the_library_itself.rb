# frozen_string_literal: true

# Libraries that were built elsewhere could not be loaded: made for another machine, with thread-local storage that
# cannot be had late, or with paths of the machine that built them.
# Right: a library that any Ruby of this machine can load. FOREIGN_LIBRARY names another file to look at.
# Not tested here: other machines (arm64), musl, and what Bundler chooses there; there is no gem with a library in it.
require_relative "support"
require "rbconfig"

MACHINES = { "x86_64" => 62, "aarch64" => 183, "arm64" => 183 }.freeze

def libraries
  return [ENV["FOREIGN_LIBRARY"]] if ENV["FOREIGN_LIBRARY"]

  Dir[File.expand_path("../../lib/sonde/*.#{RUBY_VERSION}_#{RUBY_PLATFORM}.so", __dir__)]
end

def problems_of(library)
  header = File.binread(library, 20)
  return "is no ELF file" unless header.start_with?("\x7fELF".b)

  wanted = MACHINES[RbConfig::CONFIG["host_cpu"]]
  machine = header[18, 2].unpack1("S<")
  dynamic = IO.popen(["readelf", "-d", library], &:read)
  # Where Ruby is not in a directory of the system's, it gives every extension the path of its own library.
  run_paths = dynamic.scan(/R(?:UN)?PATH.*\[(.*)\]/).flatten - [RbConfig::CONFIG["libdir"]]
  [("is made for machine #{machine}, this is #{wanted}" if wanted && machine != wanted),
   ("cannot be read" unless dynamic.include?("NEEDED")),
   ("has initial-exec storage" if dynamic.include?("STATIC_TLS")),
   ("has a run path: #{run_paths.join(", ")}" if run_paths.any?),
   ("needs an absolute path" if dynamic.match?(/NEEDED.*\[\//)),
   ("has text relocations" if dynamic.include?("TEXTREL"))].compact
end

Foreign.start
found = libraries
bad = found.flat_map { |library| Array(problems_of(library)).map { |problem| "#{library} #{problem}" } }
Foreign.stop
Foreign.verdict(bad, ("there is no library to look at" if found.empty?))
