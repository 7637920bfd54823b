# frozen_string_literal: true

require "digest"
require "json"
require "zlib"

# The index as it would be written to a disk.
class Snapshot
  attr_reader :raw_size, :compressed_size

  def initialize(index)
    @json = JSON.generate(index.to_h)
    @raw_size = @json.bytesize
  end

  # zlib works without the GVL, so this goes on beside the queries.
  def compress
    packed = Zlib::Deflate.deflate(@json, 6)
    @compressed_size = packed.bytesize
    Digest::SHA256.hexdigest(packed)
  end
end
