# frozen_string_literal: true

require_relative "../rack"
require_relative "spans"

module Sonde
  module Trace
    # Samples get the trace and span ids of OpenTelemetry's current span.
    #
    #   require "sonde/trace/opentelemetry"   # after opentelemetry-sdk
    #
    # OpenTelemetry keeps the current context of each fiber on a stack; whatever makes a span the current one (in_span,
    # with_span, an instrumentation) goes through attach and detach. What is attached or detached in another order, or
    # never detached, costs labels, nothing else.
    module OpenTelemetry
      STACK = :__sonde_otel

      # Prepended to OpenTelemetry::Context's own methods.
      module Context
        def attach(context)
          token = super
          OpenTelemetry.attached(context)
          token
        end

        def detach(token)
          OpenTelemetry.detached
          super
        end
      end

      class << self
        def attached(context)
          span = ::OpenTelemetry::Trace.current_span(context)
          ids = span.context
          stack = (Thread.current[STACK] ||= [])
          entered = ids.valid? && Spans.enter(ids.hex_trace_id, ids.span_id.unpack1("Q>"))
          stack.push(entered ? [entered, span] : nil)
        rescue StandardError => e
          stack&.push(nil)
          Spans.failed(e)
        end

        def detached
          entered, span = Thread.current[STACK]&.pop
          Spans.leave(entered, endpoint(span)) if entered
        rescue StandardError => e
          Spans.failed(e)
        end

        private

        # Of a span that stands for a request: its route, which instrumentations add while it runs.
        def endpoint(span)
          return unless span.respond_to?(:attributes) && span.respond_to?(:kind) && span.kind == :server

          attributes = span.attributes || {}
          route = attributes["http.route"]
          route && "#{attributes["http.request.method"] || attributes["http.method"]} #{route}".strip
        end
      end

      ::OpenTelemetry::Context.singleton_class.prepend(Context)
    end
  end
end
