# frozen_string_literal: true

require "json"
require_relative "loads"

# Programs that allocate much.
module AllocLoads
  # Nothing but objects.
  class Objects < Loads::Loop
    private

    def unit
      5_000.times { Object.new }
    end
  end

  # A document of some kilobytes, parsed and written.
  class Json < Loads::Loop
    def initialize
      row = { "id" => 17, "name" => "some name", "tags" => %w[a b c], "place" => { "x" => 1.5, "y" => [1, 2, 3] } }
      @document = JSON.generate(Array.new(40, row))
      super
    end

    private

    def unit
      JSON.generate(JSON.parse(@document))
    end
  end

  ALL = { "objects" => Objects, "json" => Json, "requests" => Loads::Requests }.freeze
end
