# frozen_string_literal: true

require_relative "../rack"
require_relative "spans"

module Sonde
  module Trace
    # Samples get the trace and span ids of Datadog's tracer (gems datadog and ddtrace, 1.0 and later), and those of a
    # request or job the resource of its root span, which is often known only at its end.
    #
    #   require "sonde/trace/datadog"   # after datadog
    #
    # A span is the current one of its fiber from its start to its finish. One that is finished elsewhere, or in a wrong
    # order, costs labels, nothing else.
    module Datadog
      # Types of root spans that stand for a request or a job.
      ENDPOINTS = %w[web http proxy worker].freeze

      # Prepended to SpanOperation.
      module Span
        def start(*arguments)
          result = super
          Datadog.started(self)
          result
        end

        def finish(*arguments)
          Datadog.finished(self)
          super
        end
      end

      class << self
        def started(span)
          return if span.instance_variable_defined?(:@sonde_entered)

          span.instance_variable_set(:@sonde_entered, Spans.enter(format("%032x", span.trace_id), span.id))
        rescue StandardError => e
          Spans.failed(e)
        end

        def finished(span)
          return unless span.instance_variable_defined?(:@sonde_entered)

          entered = span.instance_variable_get(:@sonde_entered)
          span.instance_variable_set(:@sonde_entered, nil)
          Spans.leave(entered, endpoint(span))
        rescue StandardError => e
          Spans.failed(e)
        end

        private

        def endpoint(span)
          span.resource if ENDPOINTS.include?(span.type) && Labels.here[Spans::ROOT] == span.id
        end
      end

      ::Datadog::Tracing::SpanOperation.prepend(Span)
    end
  end
end
