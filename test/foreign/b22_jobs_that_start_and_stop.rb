# frozen_string_literal: true

# Each of several jobs at once started and stopped a profile: what one had begun was thrown away by another, and jobs
# failed with "not started".
# Right: no exception, whoever starts and stops when.
require_relative "support"

errors = Queue.new
jobs = Array.new(6) do |job|
  Thread.new do
    8.times do |i|
      begin
        Foreign.start
        2000.times { |k| "job #{job} #{i} #{k}" }
        Foreign.stop
      rescue StandardError => e
        errors << "#{e.class}: #{e.message}"
      end
    end
    1
  end
end
alive = jobs.sum(&:value)
seen = Array.new(errors.size) { errors.pop }.uniq
Foreign.start
Foreign.burn(0.1)
Foreign.stop
Foreign.verdict(seen, ("#{alive} of 6 jobs ended" unless alive == 6))
