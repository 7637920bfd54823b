# frozen_string_literal: true

module Sonde
  module CLI
    # The private directory into which the processes below `sonde run` write (see run/part.rb), and the way in which
    # they learn of it: their environment.
    class RunDirectory
      BOOT = File.expand_path("../run/boot.rb", __dir__)
      PATIENCE = 0.3

      # One finished profile: the process, its bytes (not compressed), and what making them took (see run/part.rb).
      Part = Struct.new(:pid, :path) do
        def own_cpu
          path[%r{/\d+-\d+-(\d+)\.pb\z}, 1].to_i
        end

        def bytes
          File.binread(path)
        end

        def remove
          File.unlink(path)
        end
      end

      # A process that began and has not written its profile.
      Unfinished = Struct.new(:pid, :name) do
        # Whether it may still do so. One that has ended, but of which its parent has not taken notice, does not.
        def living?
          Process.kill(0, pid)
          File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] != "Z"
        rescue Errno::ESRCH, Errno::ENOENT
          false
        rescue Errno::EPERM
          true
        end

        def to_s
          "process #{pid} (#{name})"
        end
      end

      # Temporary directories, best first. Dir.tmpdir would warn about what it cannot use.
      def self.temporary_directories
        [ENV["TMPDIR"], "/tmp", "/var/tmp", "/dev/shm"].compact.reject(&:empty?).map { |path| File.expand_path(path) }
      end

      attr_reader :path

      # others: directories to try when there is no temporary one.
      def initialize(others)
        @path = make(self.class.temporary_directories + others)
      end

      # What a program must have in its environment to be profiled.
      def environment(modes, rate, delay, duration)
        {
          "SONDE_RUN_DIRECTORY" => path,
          "SONDE_RUN_MODES" => modes.join(","),
          "SONDE_RUN_RATE" => rate.to_s,
          "SONDE_RUN_DELAY" => delay.to_s,
          "SONDE_RUN_DURATION" => duration.to_s,
          "RUBYOPT" => "-r#{boot_path} #{ENV["RUBYOPT"]}".strip
        }
      end

      # In the order in which the processes began.
      def parts
        names("pb").map { |name| Part.new(name.to_i, File.join(path, name)) }
      end

      # Why processes could not be profiled.
      def reasons
        names("reason").map { |name| read(name) }.uniq
      end

      def unfinished
        names("run").map { |name| Unfinished.new(name.to_i, read(name).gsub(/[^[:print:]]/, "?")) }
      rescue Errno::ENOENT
        retry # one has just finished
      end

      # What ends together with the program (a Ctrl-C reaches all of them) is a little later, perhaps.
      def wait_for_stragglers
        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
        sleep 0.01 while unfinished.any?(&:living?) && Process.clock_gettime(Process::CLOCK_MONOTONIC) < limit
      end

      def remove
        Dir.children(path).each { |name| File.unlink(File.join(path, name)) }
        Dir.rmdir(path)
      rescue SystemCallError
        # A process that outlives the program may be writing just now.
        nil
      end

      private

      def read(name)
        File.read(File.join(path, name), encoding: "UTF-8").scrub("?").strip
      end

      def names(kind)
        Dir.children(path).grep(/\A\d+-\d+(?:-\d+)?\.#{kind}\z/).sort_by { |name| name[/-(\d+)/, 1].to_i }
      end

      def make(parents)
        parents.each do |parent|
          directory = File.join(parent, "sonde-run-#{Process.pid}-#{rand(1 << 48).to_s(36)}")
          begin
            Dir.mkdir(directory, 0o700)
            return directory
          rescue SystemCallError
            next # the next one, then
          end
        end
        raise Failure, "there is no directory to write to (tried #{parents.join(", ")}; TMPDIR names another)"
      end

      # RUBYOPT is split at spaces, without any way to quote one.
      def boot_path
        BOOT.match?(/\s/) ? stub_path : BOOT
      end

      # So where the gem's own path has a space, a file elsewhere loads it. It stays there: processes that outlive the
      # program have it in their RUBYOPT, and every Ruby that they start would fail without it. Its name depends on what
      # it says, so there is one for each place of the gem.
      def stub_path
        # As ASCII, whatever letters the path has, and whatever encoding the Ruby that reads it assumes.
        source = "boot = #{BOOT.b.dump}.dup.force_encoding(#{BOOT.encoding.name.dump})\n" \
                 "require boot if File.exist?(boot)\n"
        self.class.temporary_directories.reject { |parent| parent.match?(/\s/) }.each do |parent|
          stub = write_stub(parent, source)
          return stub if stub
        end
        raise Failure, "the path of the gem has a space (#{BOOT}), and RUBYOPT cannot name it; " \
                       "set TMPDIR to a directory without one that can be written"
      end

      # In a directory that only this user can have made and can write: anybody may put things into /tmp.
      def write_stub(parent, source)
        directory = File.join(parent, "sonde-boot-#{Process.euid}-#{source.sum(32).to_s(36)}")
        begin
          Dir.mkdir(directory, 0o700)
        rescue Errno::EEXIST
          stat = File.lstat(directory)
          return nil unless stat.directory? && stat.uid == Process.euid && (stat.mode & 0o077).zero?
        end
        file = File.join(directory, "boot.rb")
        AtomicFile.write(file, source) unless File.exist?(file) && File.read(file) == source
        file
      rescue SystemCallError
        nil
      end
    end
  end
end
