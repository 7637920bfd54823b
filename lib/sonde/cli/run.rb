# frozen_string_literal: true

require_relative "command"
require_relative "child"
require_relative "gathering"
require_relative "run_directory"
require_relative "../atomic_file"

module Sonde
  module CLI
    # sonde run COMMAND...: runs a program, profiles every Ruby process in it, and saves one file.
    #
    #  1. Check the options and whether the file can be written, before anything runs.
    #  2. Run the program, with RUBYOPT and SONDE_RUN_* in its environment (RunDirectory); each Ruby process below
    #     writes its profile into a private directory at its end (run/recording.rb).
    #  3. Add those up, compress, save, and tell on stderr. Nothing ever goes to stdout: that is the program's.
    #  4. End as the program ended. Children that go on running are not waited for.
    class Run < Command
      NOT_FOUND = 127
      NOT_EXECUTABLE = 126
      NAMES_AT_MOST = 5 # of processes without a profile

      def usage
        "run [-o FILE] [--rate HZ] [--modes cpu,wall,alloc,heap] [--duration S] [--delay S] [--quiet] [--] COMMAND..."
      end

      def call(command)
        usage_error("no command given") if command.empty?
        configuration = configuration_of_options
        output = choose_output(command.first)
        directory = RunDirectory.new([File.dirname(output), Dir.pwd])
        gathering = Gathering.new(directory)
        begin
          gathering.begin
          program = Child.new
          status = run_program(program, directory, configuration, command)
          directory.wait_for_stragglers
          conclude(directory, gathering, output, status, whole? ? program.cpu_time : nil)
        ensure
          directory.remove
        end
        Child.end_like(status)
      end

      private

      def define(parser)
        parser.separator("\nRuns a program and profiles the Ruby processes in it.\n\nOptions:")
        parser.on("-o", "--output FILE", "where to save (default: sonde-<command>-<pid>.pb.gz)") do |file|
          @options[:output] = file
        end
        parser.on("--rate HZ", Float, "samples each second (default: 100)") { |rate| @options[:rate] = rate }
        parser.on("--modes LIST", Array, "some of cpu, wall, alloc, heap (default: cpu,wall)") do |modes|
          @options[:modes] = modes.map(&:to_sym)
        end
        parser.on("--duration S", Float, "profile so many seconds only; the program goes on") do |s|
          @options[:duration] = s
        end
        parser.on("--delay S", Float, "begin so many seconds after the program") { |s| @options[:delay] = s }
        parser.on("--quiet", "say nothing at the end") { @options[:quiet] = true }
      end

      def configuration_of_options
        %i[duration delay].each do |name|
          value = @options[name]
          next if value.nil? || (value.positive? && value.finite?)

          usage_error("wrong option #{name}: #{value} (allowed: more than 0 seconds)")
        end
        Configuration.new(**@options.slice(:rate, :modes))
      rescue ArgumentError => e
        usage_error(e.message)
      end

      # A file that was asked for must be writable, or nothing runs. Without a wish, a directory that cannot be written
      # (a container's, say) is no reason not to run: the file goes elsewhere then.
      def choose_output(name)
        return checked(@options[:output]) if @options[:output]

        file = "sonde-#{File.basename(name).gsub(/[^\w.-]/, "_")}-#{Process.pid}.pb.gz"
        ([Dir.pwd] + RunDirectory.temporary_directories).each do |directory|
          path = File.join(directory, file)
          return path if writable?(path)
        end
        file
      end

      def checked(file)
        path = File.expand_path(file)
        AtomicFile.check(path)
        path
      rescue SystemCallError => e
        raise Failure.new("cannot write #{file}: #{reason_of(e)}; nothing was run", USAGE)
      end

      def writable?(path)
        AtomicFile.check(path)
        true
      rescue SystemCallError
        false
      end

      # Not a part of the program's time only.
      def whole?
        @options[:delay].nil? && @options[:duration].nil?
      end

      def run_program(program, directory, configuration, command)
        environment = directory.environment(configuration.modes, configuration.rate, @options[:delay] || 0,
                                            @options[:duration] || 0)
        program.run(environment, command)
      rescue Errno::ENOENT => e
        raise Failure.new("cannot run #{command.first}: #{reason_of(e)}", NOT_FOUND)
      rescue SystemCallError => e
        raise Failure.new("cannot run #{command.first}: #{reason_of(e)}", NOT_EXECUTABLE)
      end

      # Nothing that goes wrong here may hide the program's own status.
      def conclude(directory, gathering, output, status, cpu_time)
        profile = gathering.finish
        return say(nothing_profiled(directory, status)) if profile.nil?

        add_rest(profile, cpu_time) if cpu_time
        path = save(profile, output)
        report(profile, path, gathering.processes) unless @options[:quiet] || path.nil?
        unfinished(directory.unfinished)
        say("#{gathering.damaged} profiles are damaged, and left out") if gathering.damaged.positive?
      rescue Error, SystemCallError => e
        complain("the profile is lost: #{e.message}")
      end

      # What the kernel counts and no profile has: the ends of processes, programs that are not Ruby, what was killed.
      def add_rest(profile, cpu_time)
        rest = cpu_time - profile.totals.fetch("cpu-time", cpu_time)
        profile.add_cpu("(not profiled)", rest) if rest.positive?
      end

      def unfinished(processes)
        living, dead = processes.partition(&:living?)
        name_some(dead) { |process| "#{process} ended without a profile: killed?" }
        name_some(living) { |process| "#{process} goes on; it is not in the profile" }
      end

      def name_some(processes, &sentence)
        processes.first(NAMES_AT_MOST).each { |process| say(sentence.call(process)) }
        more = processes.size - NAMES_AT_MOST
        say("and #{more} more") if more.positive?
      end

      def nothing_profiled(directory, status)
        reasons = directory.reasons
        return "nothing was profiled: #{reasons.join("; ")}" unless reasons.empty?
        return "nothing was profiled: #{Native.reason}" unless Sonde.supported?
        if status.signaled?
          return "nothing was profiled: SIG#{Signal.signame(status.termsig)} ended the program at once"
        end

        ["nothing was profiled: no Ruby process wrote a profile",
         *directory.unfinished.first(NAMES_AT_MOST).map { |process| "#{process} did not" }].join("; ")
      end

      # Answers where the profile is; elsewhere than wished if that became impossible while the program ran.
      def save(profile, output)
        profile.save(output)
        shown(output)
      rescue SystemCallError => e
        elsewhere = save_elsewhere(profile, File.basename(output))
        outcome = elsewhere ? "saved as #{elsewhere}" : "the profile is lost"
        complain("cannot write #{output}: #{reason_of(e)}; #{outcome}")
        elsewhere
      end

      def save_elsewhere(profile, name)
        RunDirectory.temporary_directories.each do |directory|
          path = File.join(directory, "#{Process.pid}-#{name}")
          begin
            profile.save(path)
            return path
          rescue SystemCallError
            next # the next one, then
          end
        end
        nil
      end

      def report(profile, path, processes)
        require_relative "run_report"
        say(RunReport.new(profile, path, processes).lines.join("\n"), prefix: "")
      end

      # As the user wrote it, or as short as it can be.
      def shown(path)
        return @options[:output] if @options[:output]

        File.dirname(path) == Dir.pwd ? File.basename(path) : path
      end

      def say(text, prefix: "sonde: ")
        complain(text, prefix: prefix) unless @options[:quiet]
      end

      def complain(text, prefix: "sonde: ")
        err.puts "#{prefix}#{text}"
      rescue SystemCallError, IOError
        nil # nobody listens
      end

      # "No such file or directory", without the arguments that Ruby adds.
      def reason_of(error)
        error.class.new.message
      end
    end
  end
end
