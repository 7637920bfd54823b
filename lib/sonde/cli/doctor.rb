# frozen_string_literal: true

require_relative "command"
require_relative "../report/variables"

module Sonde
  module CLI
    # sonde doctor: what works here. Status 0 if this Ruby can be profiled.
    class Doctor < Command
      def usage
        "doctor"
      end

      def call(_arguments)
        section("Ruby", ruby)
        section("Extension", extension)
        section("Features", features) if Sonde.supported?
        section("System", system_limits)
        section("Environment", environment)
        section("Delivery", delivery)
        section("Trial", trial) if Sonde.supported?
        Sonde.supported? ? 0 : 1
      end

      private

      def define(parser)
        parser.separator("")
      end

      def section(title, lines)
        out.puts title
        lines.each { |name, text| out.puts "  #{name.to_s.ljust(34)} #{text}" }
      end

      def ruby
        jit = defined?(RubyVM::YJIT) && RubyVM::YJIT.respond_to?(:enabled?) && RubyVM::YJIT.enabled? ? "on" : "off"
        { "version" => RUBY_DESCRIPTION, "platform" => RUBY_PLATFORM, "YJIT" => jit, "sonde" => VERSION }
      end

      def extension
        return { "loaded" => "no: #{Native.reason}" } unless Sonde.supported?

        { "loaded" => "yes (built for #{Native::TAG})", "tried on this Ruby" => Native.untried || "yes" }
      end

      # What is set, without secrets.
      def environment
        set = Report::Variables.set(ENV.to_h)
        set.empty? ? { "set" => "nothing that Sonde looks at" } : set
      end

      # What a start from the environment would do.
      def delivery
        options = Report::Variables.options(ENV.to_h)
        settings = Report::Settings.new(options)
        wanted = settings.configuration
        own = { "starts by itself" => starts_by_itself, "service" => settings.environment.service,
                "measured" => "#{wanted.modes.join(", ")}, up to #{format("%g", wanted.rate)} times a second",
                "own CPU at most" => "#{format("%g", wanted.budget)} % of one processor",
                "every" => "#{settings.interval} s", "at the end at most" => "#{settings.exit_timeout} s" }
        own.merge(settings.exporters.map { |exporter| ["to #{exporter.name}", exporter.target] }.to_h)
      rescue ArgumentError => e
        { "does not start" => e.message }
      end

      def starts_by_itself
        return "no: SONDE_ENABLED is not 1" unless Report::Environment.new.true?("SONDE_ENABLED")

        ENV["RUBYOPT"].to_s.include?("sonde/auto") ? "yes" : "where sonde/auto is required (it is not in RUBYOPT)"
      end

      # The results of the engine's test of itself.
      def features
        Native.features.map { |name, reason| [name, reason.nil? ? "works" : "off: #{reason}"] }
      end

      # What decides how exactly instants are hit.
      def system_limits
        require "etc"
        resolution = Process.clock_getres(Process::CLOCK_MONOTONIC, :nanosecond)
        {
          "kernel" => Etc.uname.values_at(:sysname, :release).join(" "),
          "processors" => Etc.nprocessors,
          "CPU quota (cgroup)" => cpu_quota,
          "resolution of the clock" => "#{resolution} ns",
          "real-time priority allowed" => limit(:RTPRIO),
          "nice priority allowed" => nice_limit
        }
      end

      def cpu_quota
        quota, period = File.read("/sys/fs/cgroup/cpu.max").split
        quota == "max" ? "none" : format("%.2f processors", quota.to_f / period.to_f)
      rescue SystemCallError
        "unknown"
      end

      def limit(name)
        soft, = Process.getrlimit(name)
        soft.zero? ? "no" : "up to #{soft}"
      rescue ArgumentError, NotImplementedError, SystemCallError
        "unknown"
      end

      # RLIMIT_NICE counts from 1 (nice 19) to 40 (nice -20).
      def nice_limit
        soft, = Process.getrlimit(:NICE)
        "down to #{[20 - soft, 19].min}"
      rescue ArgumentError, NotImplementedError, SystemCallError
        "unknown"
      end

      # A fifth of a second of work, measured twice.
      def trial
        before = cpu_seconds
        profile = Sonde.profile { nil while cpu_seconds - before < 0.2 }
        return { "profile" => "failed: #{profile.comments.join("; ")}" } if profile.sample_types.empty?

        used = cpu_seconds - before
        { "CPU used by this command" => format("%.3f s", used),
          "of it in the profile" => format("%.3f s", profile.totals.fetch("cpu-time", 0) / 1e9) }
      end

      def cpu_seconds
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      end
    end
  end
end
