# frozen_string_literal: true

module Sonde
  # The engine, or the reason why there is none.
  #
  # Ruby itself loads only a small extension, the loader; the loader opens the engine's library (see ext/sonde_loader).
  # What the engine offers (Window, Profile, status, features) is defined there, in C; this file adds how it got here.
  # It must work in any program, so it uses nothing but the core of Ruby: no RubyGems, no standard library.
  module Native
    # Both libraries carry the Ruby they were built for in their names: a stale one is never loaded.
    TAG = "#{RUBY_VERSION}_#{RUBY_PLATFORM}"
    SUFFIX = RUBY_PLATFORM.include?("darwin") ? "bundle" : "so"

    # Files whose paths begin like this are Sonde's own: where a profile ends inside Sonde, these frames are left out.
    OWN_FILES = __dir__

    @loaded = false
    @reason = nil

    class << self
      # Why profiling is not possible, as a clause that can follow "because"; nil where it is.
      attr_reader :reason

      # Whether the engine is there.
      def loaded?
        @loaded
      end

      # Loads the engine, or keeps the reason why not. Never raises.
      def load_extension
        return if @loaded

        @reason = load_loader || load_engine
        @loaded = @reason.nil?
      end

      private

      def load_loader
        path = find("sonde_loader", SUFFIX)
        return missing if path.nil?

        require path
        nil
      rescue LoadError => e
        "its loader cannot be loaded (#{e.message})"
      end

      def load_engine
        path = find("sonde_native", SUFFIX)
        return missing if path.nil?

        status, details = Loader.load(path, "Init_sonde_native")
        status == :ok ? nil : "the extension cannot be loaded (#{details})"
      end

      # extconf.rb left a file with the reason in the place of a library that it could not build.
      def missing
        file = find("sonde_native", "reason") || find("sonde_loader", "reason")
        return File.read(file, encoding: "UTF-8").strip if file

        "the extension was not built for Ruby #{RUBY_VERSION} on #{RUBY_PLATFORM}; install the gem with this Ruby"
      end

      # Beside this file, where RubyGems and `rake compile` put libraries. An installation can be configured not to copy
      # them there; then they are in the extensions directory of the GEM_HOME (or of Bundler's directory, for a gem from
      # git).
      def find(name, suffix)
        file = "#{name}.#{TAG}.#{suffix}"
        beside = File.join(__dir__, file)
        return beside if File.exist?(beside)

        gem_directory = File.expand_path("../..", __dir__)
        pattern = "extensions/*/*/#{File.basename(gem_directory)}/sonde/#{file}"
        [File.dirname(gem_directory), File.expand_path("../..", gem_directory)].each do |home|
          found = Dir.glob(pattern, base: home).first
          return File.join(home, found) if found
        end
        nil
      end
    end

    load_extension
  end
end
