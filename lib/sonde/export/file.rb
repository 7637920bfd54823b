# frozen_string_literal: true

require "fileutils"
require_relative "../atomic_file"
require_relative "../clock"
require_relative "../report/failure"
require_relative "../report/file_part"

module Sonde
  module Export
    # Writes each profile into a directory, as a file of its own that appears whole or not at all, and removes the
    # oldest files when there are too many or they are too old.
    #
    #   sonde-shop-20261201T131500.123Z-1234-7.pb.gz     service, end of the profile (UTC), pid, number
    #
    # Several processes may share a directory; the limits then hold for all their files together. No file but those
    # with such a name is ever removed.
    class File
      PATTERN = /\Asonde-.*\d{8}T\d{6}\.\d{3}Z-\d+-\d+\.pb\.gz\z/.freeze
      # What a process that was killed between writing and renaming leaves behind.
      PART = /\A\.sonde-.*\.part\z/.freeze
      PART_AGE = 3600
      DEFAULT_DIRECTORY = "sonde-profiles"
      KEEP = 1000
      KEEP_SECONDS = 7 * 86_400

      attr_reader :target

      def initialize(environment, target = nil)
        directory = (target || environment["SONDE_DIRECTORY"] || DEFAULT_DIRECTORY).delete_prefix("file://")
        raise ArgumentError, "wrong option export: file= (allowed: file=DIRECTORY)" if directory.empty?

        @target = ::File.expand_path(directory)
        @service = environment.service.gsub(/[^A-Za-z0-9_.]+/, "_")[0, 60]
        @keep = environment.integer("SONDE_KEEP_FILES", KEEP, 1..1_000_000)
        @keep_seconds = environment.integer("SONDE_KEEP_SECONDS", KEEP_SECONDS, 1..1_000_000_000)
      end

      def name
        "file"
      end

      # A disk that is full now may not be in a few seconds.
      def attempts
        3
      end

      def max_age
        nil
      end

      def encode(flushed)
        stamp = flushed.finish.getutc.strftime("%Y%m%dT%H%M%S.%LZ")
        [Report::FilePart.new("sonde-#{@service}-#{stamp}-#{::Process.pid}-#{flushed.number}.pb.gz", flushed.pprof)]
      end

      def deliver(part)
        FileUtils.mkdir_p(@target)
        AtomicFile.write(::File.join(@target, part.name), part.bytes)
        rotate
      rescue Errno::ENOSPC, Errno::EDQUOT, Errno::EAGAIN, Errno::EMFILE, Errno::ENFILE, Errno::EIO => e
        raise Report::Failure.new(e.message, again: true)
      rescue SystemCallError => e
        raise Report::Failure, e.message
      end

      private

      # Names begin with the service, so the order is that of the times in them.
      def rotate
        entries = Dir.children(@target)
        remove_old_parts(entries.grep(PART))
        files = entries.grep(PATTERN).sort_by { |name| name[/\d{8}T\d{6}\.\d{3}Z-\d+-\d+/] }
        old = Time.at(now - @keep_seconds).getutc.strftime("%Y%m%dT%H%M%S.%LZ")
        excess = files.first([files.size - @keep, 0].max)
        excess |= files.take_while { |name| name[/\d{8}T\d{6}\.\d{3}Z/] < old }
        excess.each { |name| remove(name) }
      end

      def remove_old_parts(names)
        names.each do |name|
          path = ::File.join(@target, name)
          remove(name) if now - ::File.lstat(path).mtime.to_i > PART_AGE
        rescue Errno::ENOENT
          next # another process was faster
        end
      end

      def now
        Clock.real / 1_000_000_000
      end

      def remove(name)
        ::File.unlink(::File.join(@target, name))
      rescue Errno::ENOENT
        nil # another process was faster
      end
    end
  end
end
