# frozen_string_literal: true

module Sonde
  module Report
    # What may go wrong in the background: noted and said, never raised into the program.
    PROBLEMS = [StandardError, ScriptError, NoMemoryError].freeze

    # Says things on stderr, each once and in one line: a backend that is down for a week makes one, not ten thousand.
    class Voice
      LIMIT = 50 # different things; after that it is silent

      def initialize(output = nil)
        @output = output
        @said = {}
      end

      def once(topic, sentence)
        return if @said.key?(topic) || @said.size >= LIMIT

        @said[topic] = true
        (@output || $stderr).puts("sonde: #{sentence.gsub(/\s*\n\s*/, " ")}")
      rescue *PROBLEMS
        nil # a closed stderr; there is no other place to say it
      end
    end
  end
end
