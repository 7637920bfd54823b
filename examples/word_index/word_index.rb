# frozen_string_literal: true

# A small search engine for Ruby's own library: reads its sources, splits them into words, counts, ranks, compresses the
# index and answers queries. There is something of everything in it: regular expressions, hashing, sorting, JSON, zlib,
# threads that work and threads that wait. No dependencies.
#
#   ruby examples/word_index/word_index.rb [SECONDS]
require_relative "corpus"
require_relative "index"
require_relative "query_server"
require_relative "snapshot"

class WordIndex
  def initialize(seconds)
    @deadline = now + seconds
    @index = Index.new
    @documents = Corpus.new.documents
  end

  def run
    rounds = 0
    server = QueryServer.new(@index)
    while now < @deadline || rounds.zero?
      build
      snapshot = Snapshot.new(@index)
      saving = Thread.new { Thread.current.name = "snapshot"; snapshot.compress }
      server.ask(*questions)
      saving.value
      rounds += 1
    end
    server.close
    report(rounds, snapshot, server)
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def build
    @index.clear
    @documents.each { |document| @index.add(document) }
    @index.rank
  end

  def questions
    ["def initialize", "raise ArgumentError", "thread mutex", "each with index", "frozen string literal", "socket open"]
  end

  def report(rounds, snapshot, server)
    puts "#{@documents.size} documents, #{@index.size} words, indexed #{rounds} times"
    puts "snapshot: #{snapshot.raw_size / 1024} kB of JSON, #{snapshot.compressed_size / 1024} kB compressed"
    puts "queries answered: #{server.answered}; best for \"thread mutex\": #{@index.search("thread mutex").first}"
  end
end

WordIndex.new(Float(ARGV[0] || 3)).run if $PROGRAM_NAME == __FILE__
