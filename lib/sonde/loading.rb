# frozen_string_literal: true

require_relative "errors"

module Sonde
  # Files and libraries that are only loaded when somebody needs them.
  module Loading
    LOCK = Mutex.new
    private_constant :LOCK

    # Runs the block, which loads something. One at a time: Ruby warns (with -w) when threads wait for each other in
    # `require`.
    #
    # @raise [Error] in a signal handler, where neither a Mutex nor RubyGems' `require` works
    def self.once(what, &block)
      LOCK.synchronize(&block)
    rescue ThreadError
      raise Error, "#{what} cannot be loaded in a signal handler; load it before"
    end
  end
end
