# frozen_string_literal: true

# Objects and classes whose methods raise, lie or answer everything: a profiler that asks them for a name, compares them
# or puts them into a hash breaks the program, or itself.
# Right: nobody asks them, and their methods have the names that the VM knows.
require_relative "support"

HOSTILE = %i[inspect to_s name hash == eql? equal? === class object_id respond_to? method_missing singleton_class
             instance_of? is_a? kind_of? nil? frozen? dup send to_str to_ary to_proc].freeze

module Hostility
  HOSTILE.each { |name| define_method(name) { |*_arguments| raise NotImplementedError, "asked for #{name}" } }
end

class Hostile
  include Hostility
  extend Hostility

  def work
    Foreign.burn(0.05)
  end
end

class Bare < BasicObject
  def work
    ::Foreign.burn(0.05)
  end

  def method_missing(name, *) # rubocop:disable Style/MissingRespondToMissing
    ::Kernel.raise ::NotImplementedError, "asked for #{name}"
  end
end

class Nobody
  def self.name
    raise NotImplementedError, "asked for the class's name"
  end

  def self.work_of_class
    Foreign.burn(0.05)
  end

  def method_missing(*)
    self
  end

  def respond_to_missing?(*)
    true
  end

  def work_of_nobody
    Foreign.burn(0.05)
  end
end

# Frameworks wrap threads; some of them badly.
class WrappedThread < Thread
  %i[name inspect to_s status alive? native_thread_id hash == backtrace group priority].each do |name|
    define_method(name) { |*_arguments| raise NotImplementedError, "asked for #{name} of a thread" }
  end
end

class LyingError < StandardError
  def message
    raise NotImplementedError, "asked for a message"
  end

  def backtrace
    raise NotImplementedError, "asked for a backtrace"
  end
end

def raising
  raise LyingError
rescue LyingError
  Foreign.burn(0.05)
end

$VERBOSE = nil # some of these are warned of
Foreign.start
Hostile.new.work
Bare.new.work
Nobody.work_of_class
Nobody.new.anything.work_of_nobody
raising
thread = WrappedThread.new { Hostile.new.work }
thread.join
object = Object.new
def object.inspect
  raise NotImplementedError, "asked for inspect"
end

def object.work_of_one
  Foreign.burn(0.05)
end
object.work_of_one
Class.new { define_method(:work_of_anonymous) { Foreign.burn(0.05) } }.new.work_of_anonymous
Foreign.stop
Foreign.verdict
