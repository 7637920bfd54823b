# frozen_string_literal: true

require "json"
require "tmpdir"
require_relative "../atomic_file"
require_relative "failure"
require_relative "file_part"
require_relative "flushed"

module Sonde
  module Report
    # One delivery for a process and all that are forked from it (a Puma cluster, a pod): the children hand their
    # profiles over, as files in a directory that only this user may enter; the process they come from adds them to its
    # own, each with the label "worker" (the pid), and delivers the sum.
    #
    # A file is a line of JSON (what is beside the profile) and the bytes of the profile.
    class Gathering
      LABEL = "worker"
      FILE = /\A(\d+)-\d+\.profile\z/.freeze
      MOST = 1000 # files that wait; with more of them nobody is gathering any more

      # What a child delivers to, like an exporter.
      class HandOver
        def initialize(gathering)
          @gathering = gathering
        end

        def name
          "parent"
        end

        def target
          @gathering.directory
        end

        def attempts
          1
        end

        def max_age
          nil
        end

        def encode(flushed)
          beside = JSON.generate("endpoints" => flushed.endpoints)
          [FilePart.new("#{::Process.pid}-#{flushed.number}.profile", "#{beside}\n".b + flushed.pprof)]
        end

        def deliver(part)
          @gathering.put(part)
        rescue SystemCallError => e
          raise Failure, e.message
        end
      end

      attr_reader :directory

      # In the process that gathers, when it starts.
      def begin
        @owner = ::Process.pid
        @directory = Dir.mktmpdir("sonde-gathering-")
      end

      def child?
        ::Process.pid != @owner
      end

      def hand_over
        HandOver.new(self)
      end

      # In a child.
      def put(part)
        raise Failure, "process #{@owner}, which gathers the profiles, is gone" unless owner_lives?
        raise Failure, "process #{@owner} does not gather" if Dir.children(@directory).size >= MOST

        AtomicFile.write(::File.join(@directory, part.name), part.bytes)
      end

      # In the process that gathers: a flush of its own together with what the children have handed over. What cannot
      # be read is named in the profile's comments.
      def add_up(flushed)
        names = Dir.children(@directory).grep(FILE).sort
        return flushed if names.empty?

        sum = Profile.blank.merge(flushed.profile, { LABEL => @owner.to_s })
        endpoints = flushed.endpoints.dup
        names.each { |name| add(name, sum, endpoints) }
        Flushed.new(sum, flushed.number, endpoints: endpoints, last: flushed.last?)
      rescue SystemCallError
        flushed # the directory was removed
      end

      def remove
        return if child? || !::File.directory?(@directory)

        require "fileutils"
        FileUtils.rm_rf(@directory)
      end

      private

      def owner_lives?
        ::Process.kill(0, @owner)
        true
      rescue Errno::EPERM
        true
      rescue SystemCallError
        false
      end

      def add(name, sum, endpoints)
        path = ::File.join(@directory, name)
        beside, bytes = ::File.binread(path).split("\n".b, 2)
        sum.merge(Profile.from_pprof(bytes.to_s), { LABEL => name[FILE, 1] })
        JSON.parse(beside).fetch("endpoints").each { |key, count| endpoints[key] = endpoints.fetch(key, 0) + count }
      rescue *PROBLEMS => e
        sum.comment("a profile of process #{name[FILE, 1]} is lost: #{e.message}")
      ensure
        ::File.unlink(path) if ::File.exist?(path)
      end
    end
  end
end
