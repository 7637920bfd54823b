# frozen_string_literal: true

require "securerandom"
require_relative "../version"

module Sonde
  module Export
    # OTLP: names, units and limits. (core/otlp_writer.h has what follows from the format itself.)
    #
    # Counts of samples are left out: receivers multiply a count by its period to make CPU time of it, and the CPU time
    # that was measured is there already.
    module OtlpNames
      # Sonde's sample type => type and unit there; each becomes a Profile.
      TYPES = [
        %w[cpu-time cpu nanoseconds],
        %w[wall-time wall nanoseconds],
        %w[gvl-wait-time gvl_wait nanoseconds],
        %w[gc-time gc nanoseconds],
        %w[alloc-samples allocated_objects count],
        %w[alloc-size allocated_space bytes],
        %w[heap-live-samples inuse_objects count],
        %w[heap-live-size inuse_space bytes]
      ].freeze

      # key, value or nil (any), key there or nil (left out), value there or nil (the same)
      LABELS = [
        ["thread id", nil, "thread.id", nil],
        ["thread name", nil, "thread.name", nil],
        ["state", nil, "thread.state", nil],
        ["trace id", nil, "trace_id", nil],
        ["span id", nil, "span_id", nil],
        ["local root span id", nil, nil, nil],
        ["trace endpoint", nil, "http.route", nil],
        ["pid", nil, "process.pid", nil],
        ["end_timestamp_ns", nil, nil, nil]
      ].freeze

      PATH = "/v1development/profiles"
      CONTENT_TYPE = "application/x-protobuf"
      # Of a request before compression, by the specification.
      MAX_BYTES = 64 * 1024 * 1024
      # By the specification; and when there was no answer at all.
      RETRIED = [429, 502, 503, 504].freeze
      ATTEMPTS = 5

      module_function

      # The body of a request with these of the profile's samples.
      def encode(profile, resource, samples = 0...profile.sample_count)
        profile.reshape(types: TYPES, labels: LABELS, samples: samples)
               .encode_otlp(resource.map { |key, value| [key.to_s, value.is_a?(Integer) ? value : value.to_s] },
                            "sonde", VERSION, SecureRandom.random_bytes(16))
      end
    end
  end
end
