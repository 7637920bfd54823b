# frozen_string_literal: true

module Sonde
  # The sessions of this process that a forked child goes on with: the one of Sonde.start, and those of profile blocks.
  #
  # There is no lock: every step on the Hash is one under the GVL, and only a child, which has a single thread, goes
  # through all of it.
  module Sessions
    @owners = {}.compare_by_identity # session => the thread that runs its block; nil: the whole process

    class << self
      def add(session, owner = nil)
        @owners[session] = owner
      end

      def remove(session)
        @owners.delete(session)
      end

      # In a forked child. A block of a thread that is not there any more has no end.
      def after_fork
        @owners.delete_if { |_, owner| !owner.nil? && !owner.equal?(Thread.current) }
        @owners.each_key { |session| session.after_fork }
      end
    end
  end
end
