# frozen_string_literal: true

# Libraries define many methods by one block: the code is the same, the methods are not.
# Right: each below its own name, or below that of the block; never one below the name of another.
require_relative "support"

class Accessors
  %w[alpha beta gamma].each { |name| define_method(name) { Foreign.burn(0.1) } }
end

Foreign.start
%w[alpha beta gamma].each { |name| Accessors.new.send(name) }
Foreign.stop
Foreign.verdict
