# frozen_string_literal: true

module Sonde
  module Export
    # Datadog: names, units and limits.
    module DatadogNames
      # Those that Datadog knows; what else Sonde measures (wall-samples, gvl-wait-time, gc-time, alloc-size,
      # gc-debt-time) is left out.
      TYPES = [
        %w[cpu-time cpu-time nanoseconds],
        %w[cpu-samples cpu-samples count],
        %w[wall-time wall-time nanoseconds],
        %w[alloc-samples alloc-samples count],
        %w[alloc-samples-unscaled alloc-samples-unscaled count],
        %w[heap-live-samples heap-live-samples count],
        %w[heap-live-size heap-live-size bytes]
      ].freeze

      # key, value or nil (any), key there or nil (left out), value there or nil (the same)
      LABELS = [
        ["state", "running", "state", "had cpu"],
        ["state", "native", "state", "had cpu"],
        ["state", "gvl-wait", "state", "waiting for gvl"],
        ["state", "blocked", "state", "blocked"],
        ["trace id", nil, nil, nil]
      ].freeze

      AGENT_PATH = "/profiling/v1/input"
      AGENTLESS_PATH = "/api/v2/profile"
      ATTACHMENT = "profile.pprof"
      # The intake passes over larger ones; an agent refuses them with 413.
      MAX_BYTES = 10 * 1024 * 1024
      # The agent's words for "the backend or I myself am out of order".
      RETRIED = [408, 429, 500, 502, 503, 504].freeze
      # As the tracer for Go does; that for Ruby makes one.
      ATTEMPTS = 2
      TAG_LENGTH = 200
    end
  end
end
