# frozen_string_literal: true

require_relative "../atomic_file"
require_relative "../clock"

module Sonde
  module Run
    # The files of one recording, in the directory that `sonde run` made. A process has one recording after the other
    # when an exec failed or began another Ruby; so the names have an instant too.
    #
    #   <pid>-<instant>.run     what is running, as long as it is recorded. Where it is left behind by a process that is
    #                           no more, that process could not write its profile
    #   <pid>-<instant>-<ns>.pb the profile, and the CPU time that it took to make and write it, which is not in it
    #   <pid>-<instant>.reason  one sentence: why there is none
    class Part
      # Programs (and the gems that test them) replace this constant by another. This is the real one.
      File = ::File

      NAME_LIMIT = 80

      def initialize(directory, pid)
        @path = "#{directory}/#{pid}-#{Clock.monotonic}"
        @announced = false
      end

      # Answers false where the directory is gone: `sonde run` has ended, and nobody waits for a profile.
      def announce(name)
        create("#{@path}.run", name.b[0, NAME_LIMIT])
        @announced = true
      rescue SystemCallError
        false
      end

      # The block answers how much CPU time is not in the profile, once it is written: nanoseconds.
      def save(bytes)
        write("pb", bytes) { "-#{yield}" }
        close
      end

      # Why there is no profile.
      def note(reason)
        write("reason", "#{reason}\n")
        close
      rescue SystemCallError
        nil # There is nowhere left to say it; `sonde run` says that nothing was written.
      end

      # Nothing is to be expected any more.
      def close
        return unless @announced

        @announced = false
        File.unlink("#{@path}.run")
      rescue Errno::ENOENT
        nil # `sonde run` has ended meanwhile
      end

      private

      # Nobody ever sees half a file. The block answers what is added to its name once it is written.
      def write(kind, bytes)
        part = "#{@path}.#{kind}.part"
        create(part, bytes)
        File.rename(part, "#{@path}#{yield if block_given?}.#{kind}")
      end

      def create(path, bytes)
        AtomicFile.check_limit(path, bytes)
        mode = File::WRONLY | File::CREAT | File::TRUNC
        File.open(path, mode, 0o600, **AtomicFile::BYTES) { |file| file.write(bytes) }
      end
    end
  end
end
