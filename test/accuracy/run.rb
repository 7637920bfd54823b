# frozen_string_literal: true

# Runs loads of known truth under Sonde and compares: ruby test/accuracy/run.rb [options]. README.md has the rules.
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "optparse"
require "sonde"
require_relative "all"

options = { seconds: ENV["SONDE_ACCURACY"] == "short" ? 2.0 : 5.0, only: nil, runs: nil }
OptionParser.new do |parser|
  parser.banner = "Usage: ruby test/accuracy/run.rb [options]"
  parser.on("--seconds S", Float, "length of one run (default 5; 2 with SONDE_ACCURACY=short)") do |seconds|
    options[:seconds] = seconds
  end
  parser.on("--only NAMES", Array, "these workloads only, by name, separated by commas") do |names|
    options[:only] = names
  end
  parser.on("--runs N", Integer, "N runs of each, judged by their mean (default: up to 3, until one is right)") do |n|
    options[:runs] = n
  end
  parser.on("--list", "names of the workloads") do
    Accuracy::Workload.all.each { |workload| puts format("%-16s %s", workload.id, workload.title) }
    exit
  end
end.parse!

abort "Sonde does not work here: #{Sonde.unsupported_reason}" unless Sonde.supported?

known = Accuracy::Workload.all.map(&:id)
unknown = options[:only].to_a - known
abort "no workload is called #{unknown.join(", ")}; there are #{known.join(", ")}" if unknown.any?

puts "#{RUBY_DESCRIPTION}, #{options[:seconds]} s a run"
failed = Accuracy::Workload.all.reject do |workload|
  next true if options[:only] && !options[:only].include?(workload.id)

  many = options[:runs].to_i > 1
  judge = Accuracy::Judge.new(workload, seconds: options[:seconds], tries: options[:runs] || 3, every: many).run
  puts "", "#{workload.id}: #{workload.title}", Accuracy.table(judge.rows)
  judge.right?
end
puts "", failed.empty? ? "all right" : "wrong: #{failed.map(&:id).join(", ")}"
exit(failed.empty? ? 0 : 1)
