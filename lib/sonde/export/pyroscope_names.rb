# frozen_string_literal: true

module Sonde
  module Export
    # Pyroscope: names, units and limits.
    module PyroscopeNames
      # The name of a profile there, and which of Sonde's sample types are in it under which names. No "-" in any of
      # them: the server refuses it. Each has its period type, without which its identity would be incomplete.
      SERIES = {
        "process_cpu" => { types: [%w[cpu-time cpu nanoseconds], %w[cpu-samples samples count]],
                           period: %w[cpu nanoseconds] },
        "wall" => { types: [%w[wall-time wall nanoseconds]], period: %w[wall nanoseconds] },
        "gvl_wait" => { types: [%w[gvl-wait-time gvl_wait nanoseconds]], period: %w[gvl_wait nanoseconds] },
        "gc" => { types: [%w[gc-time gc nanoseconds]], period: %w[gc nanoseconds] },
        "memory" => { types: [%w[alloc-samples alloc_objects count], %w[alloc-size alloc_space bytes],
                              %w[heap-live-samples inuse_objects count], %w[heap-live-size inuse_space bytes]],
                      period: %w[space bytes] }
      }.freeze

      # key, value or nil (any), key there or nil (left out), value there or nil (the same; "%016x": a number in
      # hexadecimal digits, as numbers are dropped there). Each text label makes
      # series of its own there, so threads are left out; span and trace ids stay with the samples.
      LABELS = [
        ["thread id", nil, nil, nil],
        ["thread name", nil, nil, nil],
        ["state", nil, nil, nil],
        ["local root span id", nil, nil, nil],
        ["span id", nil, "span_id", "%016x"],
        ["trace id", nil, "trace_id", nil],
        ["trace endpoint", nil, "endpoint", nil],
        ["end_timestamp_ns", nil, nil, nil]
      ].freeze

      PATH = "/push.v1.PusherService/Push"
      CONTENT_TYPE = "application/proto"
      # Of one profile: a larger one is sent in parts, which the server adds up.
      MAX_SAMPLES = 16_000
      MAX_BYTES = 4 * 1024 * 1024
      # Of a deeper stack the server would cut the leaf off.
      MAX_DEPTH = 1000
      LABEL_VALUE = 2048
      # The server takes no profile that began an hour ago.
      MAX_AGE = 3300
      RETRIED = [408, 429, 500, 502, 503, 504].freeze
      ATTEMPTS = 5
      TENANT = /\A[0-9A-Za-z!\-_.*'()]{1,150}\z/.freeze
    end
  end
end
