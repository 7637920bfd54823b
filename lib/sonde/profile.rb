# frozen_string_literal: true

require_relative "loading"

module Sonde
  # A finished profile: what was measured between {#start} and {#finish}. It does not change any more.
  class Profile
    # One line of a {#top} list. Values are in the unit of the sample type (nanoseconds, for the times).
    Entry = Struct.new(:name, :filename, :line, :flat, :cumulative)

    # A compressed file may unpack to this many bytes; a larger one is refused rather than filling the memory.
    MAX_BYTES = 2_147_483_648

    GZIP_MAGIC = "\x1F\x8B".b.freeze

    # Reads a file in the pprof format, compressed or not.
    #
    # @param path [String, Pathname]
    # @return [Profile]
    # @raise [FormatError] if it is not a profile
    # @raise [SystemCallError] if it cannot be read
    def self.load(path)
      from_pprof(File.binread(path))
    rescue FormatError => e
      raise FormatError, "#{path}: #{e.message}"
    end

    # The profile that the bytes of a pprof file hold, compressed or not.
    #
    # @param bytes [String]
    # @return [Profile]
    # @raise [FormatError] if they are not a profile
    def self.from_pprof(bytes)
      raise Error, Sonde.unsupported_reason unless Sonde.supported?

      bytes = gunzip(bytes) if bytes.byteslice(0, 2) == GZIP_MAGIC
      new(Native::Profile.read(bytes))
    end

    # @api private
    # A profile of nothing at all, to {merge} others into.
    def self.blank
      from_pprof("\x32\x00".b) # the string table, with "" as it demands
    end

    # One file may hold several gzip streams, one after the other.
    def self.gunzip(bytes)
      load_zlib
      result = String.new(encoding: Encoding::BINARY)
      position = 0
      while position < bytes.bytesize
        position += gunzip_stream(bytes.byteslice(position, bytes.bytesize), result)
      end
      result
    rescue Zlib::Error => e
      raise FormatError, "damaged gzip data (#{e.message})"
    end

    # Appends what one stream holds to result; answers the length of the stream.
    def self.gunzip_stream(bytes, result)
      inflate = Zlib::Inflate.new(16 + Zlib::MAX_WBITS)
      inflate.inflate(bytes) do |piece|
        result << piece
        raise FormatError, "it unpacks to more than #{MAX_BYTES} bytes" if result.bytesize > MAX_BYTES
      end
      raise FormatError, "its gzip data ends too early" unless inflate.finished?

      inflate.total_in
    ensure
      # Closing it unfinished would print a warning.
      inflate&.reset
      inflate&.close
    end
    private_class_method :gunzip, :gunzip_stream

    # Not loaded with Sonde, so that nobody has it who saves nothing.
    #
    # @api private
    def self.load_zlib
      Loading.once("zlib") { require "zlib" } unless defined?(Zlib::GzipWriter)
    end

    # @api private
    def initialize(native)
      @native = native
    end

    # @api private
    # CPU time that was measured, but not sampled: nanoseconds, on the main thread of the process of that number, if
    # any.
    def add_cpu(name, nanoseconds, pid = nil)
      @native.add_cpu(name, nanoseconds, pid)
    end

    # Writes a compressed pprof file (by convention, its name ends in .pb.gz). Nobody ever sees half of it: it is
    # written under another name in the same directory, then renamed.
    #
    # @param path [String, Pathname]
    # @return [self]
    # @raise [SystemCallError] if it cannot be written
    def save(path)
      AtomicFile.write(path, to_pprof)
      self
    end

    # @return [String] the profile in the pprof format, compressed: the bytes of a .pb.gz file
    def to_pprof
      Profile.load_zlib
      # Level 1: the tables of a profile are repetitive, and higher levels cost much more than they save.
      Zlib.gzip(@native.encode, level: 1)
    end

    # The profile as the body of an OTLP request (ExportProfilesServiceRequest, v1development), not compressed.
    #
    # @param resource [Hash{String => String, Integer}] attributes of the resource, such as "service.name"
    # @return [String]
    def to_otlp(resource: {})
      require_relative "export/otlp_names"
      Export::OtlpNames.encode(self, resource)
    end

    # @return [Array<Array(String, String)>] names and units of what was measured, e.g. [["cpu-time", "nanoseconds"]]
    def sample_types
      @native.sample_types
    end

    # @return [Hash{String => Integer}] the sum of all samples, for each sample type
    def totals
      @native.totals
    end

    # The methods with the highest values.
    #
    # @param by [String, nil] a sample type; by default "cpu-time", or the first one where that was not measured
    # @param limit [Integer] how many
    # @param cumulative [Boolean] sort by what a method and all it called used, not by what it used itself
    # @return [Array<Entry>]
    # @raise [ArgumentError] if an option is wrong
    def top(by: nil, limit: 10, cumulative: false)
      names = sample_types.map(&:first)
      wrong_option(:by, by, names.join(", ")) unless by.nil? || names.include?(by)
      wrong_option(:limit, limit, "an Integer from 1") unless limit.is_a?(Integer) && limit >= 1
      return [] if names.empty?

      type = by || (names.include?("cpu-time") ? "cpu-time" : names.first)
      @native.top(type, limit, cumulative ? true : false).map { |row| Entry.new(*row) }
    end

    # @return [Time] when it began
    def start
      time(@native.start_ns)
    end

    # @return [Time] when it ended
    def finish
      time(@native.start_ns + @native.duration_ns)
    end

    # @return [Float] seconds
    def duration
      @native.duration_ns / 1e9
    end

    # @return [Integer] how many distinct samples (stacks with labels) it holds
    def sample_count
      @native.sample_count
    end

    # @return [Array<String>] remarks, among them what was lost and why
    def comments
      @native.comments
    end

    # @api private
    # Adds another profile to this one, its samples marked with the labels.
    def merge(other, labels = nil)
      @native.merge(other.native, labels)
      self
    end

    # How exact a site's part of an allocation or heap profile is. The total of alloc-samples is exact; to which site
    # the objects go is sampled. What lives is sampled altogether, so for heap-live-samples and heap-live-size this is
    # the error of the site's value over the total, as if the total were exact. The figure is for the worst case, in
    # which each window of sampling saw one site only; it is up to 1.7 times too large where sites take turns quickly.
    # For bytes it says nothing about huge objects of which none was looked at so far: the comment "alloc: ..." says how
    # rare those are.
    #
    # @param share [Float] the site's part of the total, 0.0 to 1.0
    # @param by [String] "alloc-samples", "alloc-size", "heap-live-samples" or "heap-live-size"
    # @return [Float, nil] one standard error of the share; nil if the profile does not say
    # @raise [ArgumentError] if an option is wrong
    def standard_error(share, by: "alloc-samples")
      wrong_option(:by, by, ERROR_TYPES.join(", ")) unless ERROR_TYPES.include?(by)
      wrong_option(:share, share, "0.0 to 1.0") unless share.is_a?(Numeric) && share >= 0 && share <= 1
      worth = windows_worth(by)
      worth && Math.sqrt(share * (by.start_with?("heap") ? 1 : 1.0 - share) / worth)
    end

    # @api private
    # As a backend wants it: see core/profile_reshape.h. types: [[from, type, unit], ...]; labels: [[key, value or nil
    # (any), new key or nil (left out), new value or nil (the same)], ...].
    def reshape(types:, labels: [], period_type: nil, samples: 0...sample_count, max_depth: 0)
      Profile.new(@native.reshape(types, labels, period_type, samples.begin, samples.size, max_depth))
    end

    # @api private
    def encode_otlp(resource, scope_name, scope_version, profile_id)
      @native.encode_otlp(resource, scope_name, scope_version, profile_id)
    end

    # @api private
    # The bytes of the pprof format, not compressed.
    def encode
      @native.encode
    end

    # @api private
    def comment(*texts)
      texts.each { |text| @native.comment(text) }
      self
    end

    # @return [String]
    def inspect
      values = totals.map { |type, value| " #{type}=#{value}" }.join
      "#<#{self.class} #{start} #{format("%.3f", duration)} s#{values}>"
    end

    protected

    attr_reader :native

    private

    ERROR_TYPES = %w[alloc-samples alloc-size heap-live-samples heap-live-size].freeze
    ALLOCATIONS = /\Aalloc: .*? worth ([\d.]+) equal ones for alloc-samples, ([\d.]+) for alloc-size; .*? (\d+) est/
                  .freeze
    LIVING = /\Aheap: .*?; worth ([\d.]+) equal ones for heap-live-samples, ([\d.]+) for .*? are (\d+) and (\d+);/
             .freeze
    private_constant :ERROR_TYPES, :ALLOCATIONS, :LIVING

    # Each part that was merged has a comment of its own: their shares are weighted by their totals.
    def windows_worth(type)
      parts = parts_of(type).select { |total, worth| total.positive? && worth.positive? }
      return nil if parts.empty?

      parts.sum(&:first)**2 / parts.sum { |total, worth| total**2 / worth }
    end

    # Totals (of allocations: in objects) and what they are worth.
    def parts_of(type)
      bytes = type.end_with?("-size")
      pattern = type.start_with?("heap") ? LIVING : ALLOCATIONS
      total = pattern == LIVING && bytes ? 4 : 3
      comments.map { |comment| pattern.match(comment) }.compact
              .map { |part| [part[total].to_f, part[bytes ? 2 : 1].to_f] }
    end

    def wrong_option(name, value, allowed)
      raise ArgumentError, "wrong option #{name}: #{value.inspect} (allowed: #{allowed})"
    end

    def time(nanoseconds)
      seconds, rest = nanoseconds.divmod(1_000_000_000)
      Time.at(seconds, rest, :nsec)
    end
  end
end
