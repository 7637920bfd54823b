# frozen_string_literal: true

# Names of methods, files, classes and threads in every encoding, with line breaks, with a null byte, without end, or
# empty: written as they are, they make files that nobody can read.
# Right: a profile of valid UTF-8, in which what can be read is to be read.
require_relative "support"

NAMES = ["été", "日本語", "a\0b", "two\nlines", "", "long" * 3000, "\xff\xfe\xfa".b,
         "caf\xe9".dup.force_encoding("ISO-8859-1"), "日本".encode("EUC-JP"), "emoji😀", "\u202Eright to left",
         "ünï" * 400].freeze
FILES = ["/nowhere/été.rb", "/nowhere/\xff\xfe.rb", "/nowhere/#{"long" * 1000}.rb", "/nowhere/a\nb.rb", "-",
         "(eval)", " ", "日本.rb".encode("EUC-JP")].freeze

Foreign.start
holder = Class.new
NAMES.each do |name|
  holder.send(:define_method, name) { Foreign.burn(0.03) }
  holder.new.send(name)
end
FILES.each_with_index do |file, i|
  holder.class_eval("def from_file_#{i}; Foreign.burn(0.03); end", file, 1)
  holder.new.send("from_file_#{i}")
end
Object.const_set(:"Größe", Class.new { def größe; Foreign.burn(0.03); end })
Größe.new.größe
NAMES.reject { |name| name.include?("\0") }.each do |name|
  Thread.new do
    begin
      Thread.current.name = name
    rescue ArgumentError
      nil # not every encoding may be one
    end
    Foreign.burn(0.02)
  end.join
end
Foreign.stop
Foreign.verdict
