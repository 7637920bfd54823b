# frozen_string_literal: true

module Sonde
  # Writes files of which nobody ever sees half.
  module AtomicFile
    # Without this, where a program has set Encoding.default_internal (every Rails does), Ruby would take bytes for text
    # and translate them. File::BINARY among the flags does not prevent that.
    BYTES = { binmode: true }.freeze

    class << self
      # Past the limit for the size of a file, a write brings SIGXFSZ, which ends the program.
      #
      # @raise [Errno::EFBIG]
      def check_limit(path, bytes)
        limit, = ::Process.getrlimit(:FSIZE)
        raise Errno::EFBIG, path if bytes.bytesize > limit
      end

      def write(path, bytes)
        path = target(path)
        return write_into(path, bytes) if special?(path)

        check_limit(path, bytes)
        part = part_of(path)
        begin
          File.open(part, File::WRONLY | File::CREAT | File::EXCL, 0o666, **BYTES) do |file|
            file.write(bytes)
          end
          File.rename(part, path)
        rescue SystemCallError
          remove(part)
          raise
        end
      end

      # Raises what writing there would raise, as far as that can be known beforehand.
      def check(path)
        path = target(path)
        raise Errno::EISDIR, path if File.directory?(path)
        return File.open(path, File::WRONLY) { nil } if special?(path)

        part = part_of(path)
        File.open(part, File::WRONLY | File::CREAT | File::EXCL, 0o600) { nil }
        remove(part)
      end

      private

      # A link stays a link: what it names is replaced.
      def target(path)
        path = File.expand_path(path)
        File.symlink?(path) && File.exist?(path) ? File.realpath(path) : path
      end

      # /dev/null, a pipe: there is nothing to rename.
      def special?(path)
        File.exist?(path) && !File.file?(path) && !File.directory?(path)
      end

      def write_into(path, bytes)
        File.open(path, File::WRONLY, **BYTES) { |file| file.write(bytes) }
      end

      def part_of(path)
        # Not from `rand`: a program that called srand would get other numbers with us than without.
        unique = (Random.new_seed & ((1 << 48) - 1)).to_s(36)
        File.join(File.dirname(path), ".sonde-#{Process.pid}-#{unique}.part")
      end

      def remove(part)
        File.unlink(part)
      rescue Errno::ENOENT
        nil # it was never made
      end
    end
  end
end
