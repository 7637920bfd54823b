# frozen_string_literal: true

require_relative "../../sonde"
require_relative "../report/voice"

module Sonde
  # Trace and span ids as labels, by the same mechanism as the program's own.
  module Trace
    # What tracers tell: a span becomes the current one of this fiber, and is it no longer. The local root span is the
    # first span of a trace in this process, or in what {Sonde.carry} brought here.
    module Spans
      TRACE = "trace id"
      SPAN = "span id"
      ROOT = "local root span id"
      SAID = Report::Voice.new
      private_constant :SAID

      class << self
        # trace_id: 32 hexadecimal digits; span_id: a number. Answers what {leave} wants; nil where there is nothing.
        def enter(trace_id, span_id)
          return unless Sonde.supported?

          here = Labels.here
          root = here[TRACE] == trace_id ? here[ROOT] || span_id : span_id
          Labels.enter([TRACE, trace_id, SPAN, span_id, ROOT, root])
        end

        # The program's trace matters more than its labels; that some are missing is said once.
        def failed(error)
          SAID.once(error.class, "a span has no labels: #{error.class}: #{error.message}")
        end

        # endpoint: what is known by now of the request that the span stands for.
        def leave(entered, endpoint = nil)
          Labels.amend(entered, Rack::LABEL, endpoint) if endpoint
          Labels.leave(entered)
        end
      end
    end
  end
end
