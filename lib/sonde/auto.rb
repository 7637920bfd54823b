# frozen_string_literal: true

# Starts Sonde from the environment alone:
#
#   SONDE_ENABLED=1 RUBYOPT=-rsonde/auto bundle exec puma
#
# It does nothing unless SONDE_ENABLED says so, and never raises: what is wrong is said in one line on stderr, and the
# program runs without a profiler. All variables: docs/configuration.md.
begin
  if %w[1 true yes on].include?(ENV["SONDE_ENABLED"].to_s.strip.downcase)
    require_relative "../sonde"
    require_relative "report/variables"
    Sonde.start(**Sonde::Report::Variables.options(ENV.to_h))
  end
rescue StandardError, ScriptError, NoMemoryError => e
  begin
    $stderr.puts("sonde: not started: #{e.message}")
  rescue SystemCallError, IOError
    nil # a closed stderr
  end
end
