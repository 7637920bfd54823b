# frozen_string_literal: true

# Two threads that wait for questions and answer them: mostly idle, as threads of a server are.
class QueryServer
  attr_reader :answered

  def initialize(index, threads: 2)
    @index = index
    @questions = Queue.new
    @answers = Queue.new
    @answered = 0
    @threads = Array.new(threads) { |i| Thread.new { Thread.current.name = "query #{i}"; serve } }
  end

  def ask(*queries)
    queries.each { |query| @questions << query }
    queries.map { @answers.pop }.tap { |answers| @answered += answers.size }
  end

  def close
    @threads.each { @questions << nil }
    @threads.each(&:join)
  end

  private

  def serve
    while (query = @questions.pop)
      @answers << answer(query)
    end
  end

  def answer(query)
    sleep 0.002 # as long as a small database would take
    @index.search(query)
  end
end
