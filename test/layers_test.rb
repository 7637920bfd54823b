# frozen_string_literal: true

require "minitest/autorun"
require "open3"

# The layout of the sources that ARCHITECTURE.md describes, enforced.
class LayersTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  NATIVE = "ext/sonde_native"
  C_LIBRARY = %w[assert.h errno.h inttypes.h limits.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h
                 string.h].freeze
  SHARED = %w[core/base.h core/status.h].freeze

  # What a folder may include of ours (folders, or single headers) and of the system's.
  #   :c     the C library      :posix  any header that is not Ruby's      :ruby  public Ruby headers as well
  LAYERS = {
    "core" => { ours: %w[core], system: :c },
    "os" => { ours: %w[os] + SHARED, system: :posix },
    "record" => { ours: %w[record core os], system: :posix },
    "vm" => { ours: %w[vm] + SHARED, system: :ruby },
    "collect" => { ours: %w[collect vm record os core], system: :ruby },
    "binding" => { ours: %w[binding collect vm record os core], system: :ruby },
    "" => { ours: %w[binding collect vm record os core], system: :ruby } # extension.c: the order of initialisation
  }.freeze

  INCLUDE = /^\s*#\s*include\s+([<"])([^>"]+)[>"]/.freeze
  VERSION_MACRO = /\bRUBY_API_VERSION\w*|\bRUBY_VERSION\b|\bHAVE_RB_\w+|\bHAVE_STRUCT_\w+/.freeze
  # In a file marked "signal-context file": only what a signal handler may call.
  SIGNAL_SAFE = /\A(sn_\w+|mem(cpy|set|cmp|move)|clock_gettime|syscall|write|gettid|getpid|pthread_self|process_vm_readv
                  |sigaction|sigfillset|__errno_location|rb_postponed_job_(trigger|register|register_one)|rb_during_gc
                  |_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(asan|ubsan|tsan)_\w+)\z/x.freeze
  MAX_LINES = 600
  MAX_COLUMNS = 120
  PATH = %r{\A(ext|lib|test|bin|exe|docs|examples|benchmark|\.ci|core|os|record|vm|collect|binding)/[\w.*{},/-]*\z}x
         .freeze

  def sources
    @sources ||= Dir.chdir(ROOT) { Dir["#{NATIVE}/**/*.{c,h,def}"].sort }
  end

  def files
    Dir.chdir(ROOT) do
      Dir["{ext,lib,test,examples,benchmark}/**/*.{c,h,def,rb,sh}"] + Dir["{bin,exe}/*"] + %w[.ci/run Rakefile]
    end
  end

  def text(path)
    File.read(File.join(ROOT, path), encoding: "UTF-8")
  end

  # Without comments and strings, so that words in them are no code. Line breaks stay.
  def code(path)
    text(path).gsub(%r{/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"}m) do |part|
      part.start_with?('"') ? '""' : "\n" * part.count("\n")
    end
  end

  def folder(path)
    inside = File.dirname(path).delete_prefix(NATIVE).delete_prefix("/")
    inside.split("/").first || ""
  end

  def each_include
    sources.each do |path|
      text(path).scan(INCLUDE) { |kind, header| yield path, folder(path), kind == "<", header }
    end
  end

  # Of the header named in `path`, its path inside the extension.
  def inside(path, header)
    File.expand_path(header, "/#{File.dirname(path)}").delete_prefix("/#{NATIVE}/")
  end

  def test_there_is_something_to_check
    refute_empty sources
    assert_empty sources.map { |path| folder(path) }.uniq - LAYERS.keys, "a folder that no layer is known for"
  end

  def test_our_headers_are_included_downwards_only
    wrong = []
    each_include do |path, layer, system, header|
      next if system || header == "extconf.h"

      target = inside(path, header)
      allowed = LAYERS.fetch(layer)[:ours].any? { |name| target == name || File.dirname(target) == name }
      allowed ||= layer == "" && !target.include?("/")
      wrong << "#{path} includes #{header}" unless allowed
      wrong << "#{path}: there is no #{header}" unless File.exist?(File.join(ROOT, NATIVE, target))
    end
    assert_empty wrong
  end

  def test_system_headers_are_those_of_the_layer
    wrong = []
    each_include do |path, layer, system, header|
      next unless system

      ruby = header.start_with?("ruby.h", "ruby/")
      allowed = case LAYERS.fetch(layer)[:system]
                when :c then C_LIBRARY.include?(header)
                when :posix then !ruby
                else true
                end
      wrong << "#{path} includes <#{header}>" unless allowed
    end
    assert_empty wrong
  end

  def test_no_private_header_of_the_vm_is_used
    wrong = []
    each_include do |path, _, _, header|
      private_header = header.match?(/\A(vm_core|iseq|method|id_table|rb_mjit|ruby_atomic)|internal\//)
      wrong << "#{path} includes #{header}" if private_header
    end
    assert_empty wrong
  end

  def test_only_the_vm_layer_knows_ruby_versions
    wrong = sources.reject { |path| folder(path) == "vm" }.flat_map do |path|
      found = code(path).scan(/#{VERSION_MACRO}|ruby\/version\.h/).uniq
      found << "extconf.h" if text(path).match?(/#\s*include\s+"extconf\.h"/)
      found.map { |word| "#{path}: #{word}" }
    end
    assert_empty wrong
  end

  def test_the_core_does_no_io_and_reads_no_clock
    forbidden = /\b(f?printf|puts|fopen|open|read|write|clock_gettime|time|pthread_\w+|rb_\w+)\s*\(/
    wrong = sources.select { |path| folder(path) == "core" }.flat_map do |path|
      code(path).scan(forbidden).flatten.uniq.map { |word| "#{path}: #{word}" }
    end
    assert_empty wrong
  end

  # All objects of an extension land in one folder.
  def test_base_names_are_unique
    names = sources.grep(/\.c\z/).map { |path| File.basename(path) }
    assert_empty names.select { |name| names.count(name) > 1 }.uniq
  end

  def test_lines_are_of_readable_length
    wide = files.flat_map do |path|
      text(path).lines.each_with_index.select { |line, _| line.chomp.size > MAX_COLUMNS }
                .map { |line, i| "#{path}:#{i + 1} has #{line.chomp.size} columns" }
    end
    assert_empty wide
  end

  def test_files_are_of_readable_length
    long = files.map { |path| [path, text(path).count("\n")] }.select { |_, lines| lines > MAX_LINES }
    assert_empty long.map { |path, lines| "#{path} has #{lines} lines" }
  end

  def test_files_marked_signal_call_only_what_a_handler_may
    marked = sources.grep(/\.c\z/).select { |path| text(path).include?("signal-context file") }
    skip "no file is marked \"signal-context file\"" if marked.empty?

    objects = marked.flat_map { |path| Dir[File.join(ROOT, "tmp/**/#{File.basename(path, ".c")}.o")] }
    skip "nothing is compiled in tmp/" if objects.empty?
    skip "nm is not installed" unless system("nm", "--version", out: File::NULL, err: File::NULL)

    wrong = objects.flat_map do |object|
      names, status = Open3.capture2("nm", "-u", object)
      assert status.success?, "nm -u #{object} failed"
      names.split("\n").map { |line| line.split.last.sub(/@.*/, "") }.reject { |name| SIGNAL_SAFE.match?(name) }
                       .map { |name| "#{object}: #{name}" }
    end
    assert_empty wrong
  end

  def test_every_key_of_the_status_is_documented
    known = text("#{NATIVE}/binding/module_native.c").scan(/\bput\(hash, "(\w+)"/).flatten
    refute_empty known
    documented = text("docs/internals/counters.md").scan(/^\| `(\w+)` \|/).flatten
    assert_empty known - documented, "keys of Sonde.status without a line in docs/internals/counters.md"
    assert_empty documented - known, "lines in docs/internals/counters.md about keys that do not exist"
  end

  def test_every_counter_is_in_the_status
    counters = text("#{NATIVE}/core/counters.def").scan(/^SN_COUNTER\((\w+),/).flatten
    refute_empty counters
    shown = text("#{NATIVE}/binding/module_native.c")
    # job_ns is shown as a part of own_cpu_ns.
    assert_empty counters.reject { |name| name == "job_ns" || shown.include?("\"#{name}\"") }
  end

  # In `code` or as a link: `ext/...`, `core/memory.h` (short for ext/sonde_native/core/memory.h), with * and {a,b}.
  def test_paths_in_the_documents_exist
    wrong = documents.flat_map do |document|
      links = text(document).scan(/\]\(([^)#\s]+)[^)]*\)/).flatten.reject { |link| link.match?(/\A[a-z]+:/) }
      missing = links.reject { |link| File.exist?(File.expand_path(link, File.join(ROOT, File.dirname(document)))) }
      (missing + mentioned(document).reject { |path| exists?(path) }).map { |path| "#{document}: #{path}" }
    end
    assert_empty wrong
  end

  private

  def documents
    Dir.chdir(ROOT) { Dir["docs/**/*.md"] + Dir["{README,ARCHITECTURE,CONTRIBUTING}.md"] + Dir["test/**/*.md"] }
  end

  def mentioned(document)
    text(document).scan(/`([^`\n]+)`/).flatten.flat_map(&:split).map { |word| word.sub(/[:,;.]+\z/, "") }
                  .select { |word| PATH.match?(word) }
  end

  def exists?(path)
    Dir.chdir(ROOT) { ["", "#{NATIVE}/"].any? { |base| Dir.glob(base + path).any? } }
  end
end
