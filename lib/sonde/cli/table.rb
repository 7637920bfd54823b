# frozen_string_literal: true

module Sonde
  module CLI
    # The hottest methods of a profile as a table of text.
    class Table
      def initialize(profile, directory: Dir.pwd)
        @profile = profile
        @directory = "#{directory}/"
        @units = profile.sample_types.to_h
      end

      # A heading, and a line for each method.
      def render(type, limit: 10, cumulative: false)
        total = @profile.totals.fetch(type, 0)
        entries = @profile.top(by: type, limit: limit, cumulative: cumulative)
        heading = format("%10s %6s  %10s %6s  %s", "self", "", "total", "", type)
        [heading, *entries.map { |entry| line(entry, type, total) }].map(&:rstrip)
      end

      # A value with its unit, for people.
      def value(number, type)
        case @units[type]
        when "nanoseconds" then seconds(number / 1e9)
        when "bytes" then bytes(number)
        else number.to_s
        end
      end

      private

      def line(entry, type, total)
        format("%10s %6s  %10s %6s  %s%s", value(entry.flat, type), share(entry.flat, total),
               value(entry.cumulative, type), share(entry.cumulative, total), text(entry.name), place(entry))
      end

      def seconds(number)
        number.abs < 1 ? format("%.1f ms", number * 1000) : format("%.2f s", number)
      end

      def bytes(number)
        return "#{number} B" if number.abs < 1024
        return format("%.1f KiB", number / 1024.0) if number.abs < 1_048_576

        format("%.1f MiB", number / 1_048_576.0)
      end

      def share(number, total)
        total.zero? ? "" : format("%.1f%%", 100.0 * number / total)
      end

      def place(entry)
        file = short(text(entry.filename))
        # In angle brackets: no file, but what there is instead, such as a function in C.
        return "" if file.empty? || file.start_with?("<")

        entry.line.to_i.positive? ? "  #{file}:#{entry.line}" : "  #{file}"
      end

      # Files of the program by their path in it, files of gems by their gem.
      def short(file)
        return file[@directory.size..-1] if file.start_with?(@directory)

        file.sub(%r{\A.*/gems/(?=[^/]+-\d)}, "")
      end

      def text(bytes)
        bytes.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")
      end
    end
  end
end
