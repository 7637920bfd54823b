# frozen_string_literal: true

# Runs loads of known truth under Sonde and compares: ruby test/accuracy/run.rb [options]. README.md has the rules.
# With --all under each of the conditions that this Ruby knows: as it is, with YJIT, beside neighbours, and both.
$LOAD_PATH.unshift(File.expand_path("../../lib", __dir__))
require "optparse"
require "sonde"
require_relative "all"
require_relative "conditions"

arguments = ARGV.dup
options = { seconds: ENV["SONDE_ACCURACY"] == "short" ? 2.0 : 5.0, only: nil, runs: nil, neighbours: 0 }
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
  parser.on("--yjit", "under YJIT, where this Ruby has it (status 75 where not)") { options[:yjit] = true }
  parser.on("--neighbours N", Integer, "beside N processes that burn CPU without pause") do |n|
    options[:neighbours] = n
  end
  parser.on("--all", "under every condition in turn: as it is, --yjit, --neighbours 2, both") { options[:all] = true }
  parser.on("--list", "names of the workloads") do
    Accuracy::Workload.all.each { |workload| puts format("%-16s %s", workload.id, workload.title) }
    exit
  end
end.parse!

abort "Sonde does not work here: #{Sonde.unsupported_reason}" unless Sonde.supported?

if options[:yjit] && !Accuracy::Conditions.yjit_enabled?
  unless Accuracy::Conditions.yjit?
    warn "this Ruby has no YJIT"
    exit 75
  end
  exec(RbConfig.ruby, "-w", "--yjit", __FILE__, *arguments)
end

if options[:all]
  rest = arguments - ["--all"]
  conditions = [[], %w[--yjit], %w[--neighbours 2], %w[--yjit --neighbours 2]]
  conditions.select! { |words| !words.include?("--yjit") || Accuracy::Conditions.yjit? }
  bad = conditions.reject { |words| system(RbConfig.ruby, "-w", __FILE__, *rest, *words) }
  puts "", "in all conditions: #{bad.empty? ? "all right" : "wrong: #{bad.map { |words| words.join(" ") }.inspect}"}"
  exit(bad.empty? ? 0 : 1)
end

known = Accuracy::Workload.all.map(&:id)
unknown = options[:only].to_a - known
abort "no workload is called #{unknown.join(", ")}; there are #{known.join(", ")}" if unknown.any?

puts "#{RUBY_DESCRIPTION}, #{options[:seconds]} s a run, #{options[:neighbours]} neighbours"
chosen = Accuracy::Workload.all.select { |workload| options[:only].nil? || options[:only].include?(workload.id) }
failed = chosen.reject do |workload|
  if workload.unavailable
    puts "", "#{workload.id}: #{workload.unavailable}"
    next true
  end
  many = options[:runs].to_i > 1
  judge = Accuracy::Judge.new(workload, seconds: options[:seconds], tries: options[:runs] || 3, every: many)
  Accuracy::Conditions.beside_neighbours(options[:neighbours]) { judge.run }
  puts "", "#{workload.id}: #{workload.title}", Accuracy.table(judge.rows)
  $stdout.flush
  judge.right?
end
puts "", failed.empty? ? "all right" : "wrong: #{failed.map(&:id).join(", ")}"
exit(failed.empty? ? 0 : 1)
