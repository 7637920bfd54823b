# frozen_string_literal: true

module Sonde
  # The sessions of this process that a forked child goes on with: the one of Sonde.start, and those of profile blocks.
  #
  # There is no lock: every step is one under the GVL, and only a child, which has a single thread, goes through all of
  # it.
  #
  # Sessions of blocks are not kept alive: a fiber that is dropped in the middle of its block never ends it, but when
  # the collector takes the fiber, the session goes with it, and so does its window.
  module Sessions
    @lasting = {}.compare_by_identity # session => true
    @blocks = ObjectSpace::WeakMap.new # session => the thread that runs its block; nil: ended

    class << self
      def add(session, owner = nil)
        owner ? @blocks[session] = owner : @lasting[session] = true
      end

      def remove(session)
        @lasting.delete(session)
        @blocks[session] = nil if @blocks.key?(session)
      end

      # In a forked child. A block of a thread that is not there any more has no end.
      def after_fork
        @lasting.each_key { |session| session.after_fork }
        @blocks.keys.each { |session| @blocks[session].equal?(Thread.current) ? session.after_fork : remove(session) }
      end
    end
  end
end
