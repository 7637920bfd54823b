# frozen_string_literal: true

require_relative "lib/sonde/version"

Gem::Specification.new do |spec|
  spec.name = "sonde"
  spec.version = Sonde::VERSION
  spec.authors = ["The Sonde authors"]
  spec.license = "MIT"
  spec.summary = "An always-on profiler for Ruby"
  spec.description = "CPU and wall-clock profiles of every thread of a Ruby process, cheap enough to leave on, " \
                     "written in the pprof format."
  spec.required_ruby_version = ">= 2.7"

  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "exe/*", "ext/**/*.{c,h,def,rb}", "docs/**/*.md", "LICENSE", "*.md"].sort
  end
  spec.bindir = "exe"
  spec.executables = ["sonde"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/sonde_loader/extconf.rb", "ext/sonde_native/extconf.rb"]

  spec.add_development_dependency "minitest", ">= 5.13"
  spec.add_development_dependency "rake", ">= 13"
end
