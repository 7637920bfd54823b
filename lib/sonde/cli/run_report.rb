# frozen_string_literal: true

require_relative "table"

module Sonde
  module CLI
    # What `sonde run` says at the end: where the file is, how long it took, totals, what was lost, the hottest methods.
    class RunReport
      TABLES = %w[cpu-time wall-time alloc-size].freeze
      REMARKS = 5 # every process may have made one

      def initialize(profile, path, processes)
        @profile = profile
        @path = path
        @processes = processes
        @table = Table.new(profile)
      end

      def lines
        types = TABLES & @profile.sample_types.map(&:first)
        ["sonde: #{format("%.2f", @profile.duration)} s#{of_processes} profiled: #{totals}",
         *remarks,
         *types.flat_map { |type| table(type) },
         "",
         "sonde: saved as #{@path} (to browse it: go tool pprof -http=: #{@path})"]
      end

      private

      def of_processes
        @processes > 1 ? " of #{@processes} processes" : ""
      end

      def totals
        times = TABLES.select { |type| @profile.totals.key?(type) }
        texts = times.map { |type| "#{type} #{@table.value(@profile.totals[type], type)}" }
        texts.empty? ? "nothing" : texts.join(", ")
      end

      # The profile's own remarks: among them what was dropped, by reason.
      def remarks
        comments = @profile.comments
        lines = comments.first(REMARKS).map { |comment| "sonde: #{comment}" }
        more = comments.size - REMARKS
        more.positive? ? lines << "sonde: and #{more} more remarks, in the file" : lines
      end

      def table(type)
        return [] if @profile.totals.fetch(type, 0).zero?

        ["", *@table.render(type)]
      end
    end
  end
end
