# frozen_string_literal: true

require "rbconfig"

Document = Struct.new(:name, :text)

# The sources of Ruby's library, in alphabetical order, up to so many bytes.
class Corpus
  BYTES = 1_500_000

  def initialize(directory = RbConfig::CONFIG["rubylibdir"])
    @directory = directory
  end

  def documents
    left = BYTES
    paths.each_with_object([]) do |path, list|
      text = read(path)
      list << Document.new(path.delete_prefix("#{@directory}/"), text)
      left -= text.bytesize
      break list if left.negative?
    end
  end

  private

  def paths
    Dir[File.join(@directory, "**", "*.rb")].sort
  end

  def read(path)
    File.read(path, encoding: "UTF-8").scrub("?")
  end
end
