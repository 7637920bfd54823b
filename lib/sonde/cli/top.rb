# frozen_string_literal: true

require_relative "command"
require_relative "table"

module Sonde
  module CLI
    # sonde top FILE...: the hottest methods of one profile, or of several added up.
    class Top < Command
      def usage
        "top [--by TYPE] [--limit N] [--cumulative] FILE..."
      end

      def call(files)
        usage_error("no file given") if files.empty?
        usage_error("wrong --limit: #{@options[:limit]} (allowed: 1 and more)") if @options.fetch(:limit, 1) < 1
        profile = load(files)
        print_table(profile, type_of(profile))
        0
      end

      private

      def define(parser)
        parser.separator("\nOptions:")
        parser.on("--by TYPE", "e.g. wall-time, alloc-size (default: cpu-time)") { |type| @options[:by] = type }
        parser.on("--limit N", Integer, "how many methods (default: 30)") { |limit| @options[:limit] = limit }
        parser.on("--cumulative", "sort by what a method and all it called used") { @options[:cumulative] = true }
      end

      # Options may follow the files.
      def parse(arguments)
        parser.permute(arguments)
      end

      def load(files)
        profiles = files.map do |file|
          begin
            Profile.load(file)
          rescue SystemCallError, Error => e
            raise Failure, e.message
          end
        end
        profiles.reduce { |sum, profile| sum.merge(profile) }
      rescue Error => e
        raise Failure, "the profiles cannot be added up: #{e.message}"
      end

      def type_of(profile)
        names = profile.sample_types.map(&:first)
        wanted = @options[:by]
        unless wanted.nil? || names.include?(wanted)
          raise Failure, "there is no #{wanted} in it (there is: #{names.join(", ")})"
        end

        wanted || (names.include?("cpu-time") ? "cpu-time" : names.first)
      end

      def print_table(profile, type)
        return out.puts("The profile is empty.") if type.nil?

        table = Table.new(profile)
        totals = profile.totals.map { |name, value| "#{name} #{table.value(value, name)}" }
        began = profile.start.strftime("%Y-%m-%d %H:%M:%S")
        out.puts "#{began}, #{format("%.2f", profile.duration)} s: #{totals.join(", ")}"
        out.puts(*table.render(type, limit: @options.fetch(:limit, 30), cumulative: @options.fetch(:cumulative, false)))
      end
    end
  end
end
