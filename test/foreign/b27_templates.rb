# frozen_string_literal: true

# Templates compile to methods whose names end in random numbers: the same view never added up, and names and memory of
# the profiler grew with each reload.
# Right: memory is level, and the profile has one method for the one template.
require_relative "support"

FILE = "app/views/orders/show.html.erb"
LIMIT = 8000 # kilobytes
RELOADS = Foreign.size("FOREIGN_RELOADS", 1500)

VIEWS = Class.new

def reload(from)
  RELOADS.times do |i|
    name = "_app_views_orders_show_html_erb__#{"_" if i.odd?}#{rand(2**60)}_#{from + i}"
    VIEWS.class_eval("def #{name}(o)\n o << 'row'\n 300.times { |x| o << x.to_s }\n o.size\nend", FILE, 0)
    VIEWS.new.send(name, +"")
    VIEWS.send(:remove_method, name)
  end
  GC.start
  Foreign.rss
end

Foreign.start
memory = Array.new(3) { |i| reload(i * RELOADS) }
Foreign.stop
grown = memory[2] - memory[1]
Foreign.verdict(("kB of memory after each #{RELOADS} reloads: #{memory.inspect}" unless grown < LIMIT))
