# frozen_string_literal: true

module Sonde
  module Export
    # Which container this process runs in, as Datadog's agent wants to know it.
    module Container
      LINE = /\A\d+:[^:]*:(.+)\z/.freeze
      UUID = /\h{8}[-_]\h{4}[-_]\h{4}[-_]\h{4}[-_]\h{12}/.freeze
      GARDEN = /\h{8}(?:-\h{4}){4}/.freeze
      ID = %r{(\h{64}|#{UUID}|#{GARDEN}|\h{32}-\d+)(?:\.scope(?:/[^/]+)?)?\s*\z}.freeze
      HOST_INODE = 0xEFFFFFFB

      class << self
        def id
          return @id if defined?(@id)

          @id = id_in(::File.read("/proc/self/cgroup"))
        rescue SystemCallError
          @id = nil
        end

        # For cgroups of the second version, whose path inside the container says nothing.
        def inode
          return @inode if defined?(@inode)

          @inode = read_inode
        rescue SystemCallError
          @inode = nil
        end

        # text: that of /proc/self/cgroup
        def id_in(text)
          text.each_line do |line|
            path = line.chomp[LINE, 1]
            found = path && path[ID, 1]
            return found if found
          end
          nil
        end

        private

        def read_inode
          return if ::File.stat("/proc/self/ns/cgroup").ino == HOST_INODE

          ::File.foreach("/proc/self/cgroup") do |line|
            _, controllers, path = line.chomp.split(":", 3)
            base = { "memory" => "/sys/fs/cgroup/memory", "" => "/sys/fs/cgroup" }[controllers.to_s]
            full = base && ::File.join(base, path.to_s)
            return ::File.stat(full).ino if full && ::File.exist?(full)
          end
          nil
        end
      end
    end
  end
end
