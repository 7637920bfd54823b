# frozen_string_literal: true

module Sonde
  # The sessions of this process that a forked child goes on with: the one of Sonde.start, and those of profile blocks.
  #
  # There is no lock: every step is one under the GVL, and only a child, which has a single thread, goes through all of
  # it.
  #
  # Sessions of blocks are not kept alive: a fiber that is dropped in the middle of its block never ends it, but when
  # the collector takes the fiber, the session goes with it, and so does its window. So only their numbers are kept, and
  # a child looks for them among all objects. (A WeakMap would find them at once, but up to 3.1.3 and 3.2.2 GC.compact
  # damages those: Ruby bug #19529.)
  module Sessions
    # Programs may replace this method. This is the real one.
    EACH_OBJECT = ObjectSpace.method(:each_object)
    private_constant :EACH_OBJECT

    @lasting = {}.compare_by_identity # session => true
    @blocks = {} # number of a session whose block runs, or was dropped => true

    class << self
      # owner: the thread that runs its block.
      def add(session, owner = nil)
        return @lasting[session] = true unless owner

        session.owner = owner
        @blocks[session.object_id] = true
      end

      def remove(session)
        @lasting.delete(session)
        @blocks.delete(session.object_id)
        session.owner = nil
      end

      # In a forked child. A block of a thread that is not there any more has no end.
      def after_fork
        @lasting.each_key { |session| session.after_fork }
        return if @blocks.empty?

        @blocks.clear # of some nobody knows any more
        EACH_OBJECT.call(Session).select(&:owner).each do |session|
          session.owner.equal?(Thread.current) ? go_on(session) : remove(session)
        end
      end

      private

      def go_on(session)
        @blocks[session.object_id] = true
        session.after_fork
      end
    end
  end
end
