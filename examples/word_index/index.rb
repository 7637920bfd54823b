# frozen_string_literal: true

# Which word occurs in which documents, and how telling it is there.
class Index
  WORD = /[a-z][a-z0-9]+/.freeze
  BEST = 20

  def initialize
    clear
  end

  def clear
    @postings = Hash.new { |hash, word| hash[word] = {} }
    @lengths = {}
    @ranked = {}
  end

  def add(document)
    words = tokenize(document.text)
    count(words).each { |word, times| @postings[word][document.name] = times }
    @lengths[document.name] = words.size
  end

  # For each word its best documents, the most telling first.
  def rank
    @ranked = @postings.map { |word, documents| [word, best(documents)] }.to_h
  end

  def search(query)
    scores = Hash.new(0.0)
    tokenize(query).each do |word|
      @ranked.fetch(word, []).each { |name, score| scores[name] += score }
    end
    scores.sort_by { |name, score| [-score, name] }.map(&:first).first(5)
  end

  def size
    @postings.size
  end

  def to_h
    { "words" => @ranked, "lengths" => @lengths }
  end

  private

  # fooBar and foo_bar are two words each.
  def tokenize(text)
    text.gsub(/([a-z])([A-Z])/, '\1 \2').tr("_", " ").downcase.scan(WORD)
  end

  def count(words)
    words.each_with_object(Hash.new(0)) { |word, counts| counts[word] += 1 }
  end

  def best(documents)
    rarity = Math.log(1 + @lengths.size.fdiv(documents.size))
    scored = documents.map { |name, times| [name, (rarity * times / Math.sqrt(@lengths[name])).round(4)] }
    scored.sort_by { |name, score| [-score, name] }.first(BEST)
  end
end
