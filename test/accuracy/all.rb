# frozen_string_literal: true

require_relative "support"
%w[split two_lines c_functions c_without_gvl pool competing never_wakes short_threads periodic recursion garbage
   totals].each { |name| require_relative "workloads/#{name}" }

module Accuracy
  HEADINGS = ["", "truth", "seen", "error", "", "mean error", "runs", "verdict"].freeze

  # Rows of Judge#rows as aligned text.
  def self.table(rows)
    lines = [HEADINGS, *rows].map { |row| row.map(&:to_s) }
    widths = lines.transpose.map { |column| column.map(&:size).max }
    lines.map do |row|
      cells = row.each_with_index.map { |cell, i| i.zero? ? cell.ljust(widths[i]) : cell.rjust(widths[i]) }
      "  #{cells.join("  ")}".rstrip
    end
  end
end
