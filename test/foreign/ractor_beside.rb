# frozen_string_literal: true

# A second Ractor that lives while the main one works.
# Right: the main one's work is in the profile, under its name.
require_relative "support"

def of_main
  Foreign.burn(0.4)
end

Foreign.start
$VERBOSE = nil # Ruby's own notice that they are experimental
beside = Ractor.new { Ractor.receive }
of_main
beside.send(7)
answer = beside.respond_to?(:take) ? beside.take : beside.value
Foreign.stop
Foreign.verdict(("the Ractor answered #{answer.inspect}" unless answer == 7))
