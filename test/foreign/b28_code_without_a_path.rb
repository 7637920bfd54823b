# frozen_string_literal: true

# Compile caches load code that has no path, and C functions call blocks where no Ruby frame is near: a dump of
# allocations crashed on objects made there.
# Right: alive; a frame without a path has a stand-in for it.
require_relative "support"

SOURCE = 'def from_binary; 3000.times { |i| $kept << "b#{i}" }; Foreign.burn(0.02); end'

$kept = []
Foreign.start
["/app/cached.rb", "", "no_real_file", nil].each do |path|
  code = RubyVM::InstructionSequence.compile(SOURCE, path, nil, 1)
  RubyVM::InstructionSequence.load_from_binary(code.to_binary).eval # as a compile cache does
  from_binary
  Object.send(:remove_method, :from_binary)
end
RubyVM::InstructionSequence.compile_option = { coverage_enabled: false }
ObjectSpace.define_finalizer(Object.new, proc { $kept << "from a finalizer" })
trap("USR1") { $kept << "from a trap" }
Process.kill(:USR1, Process.pid)
[3, 1, 2].sort_by { |x| $kept << "from a callback"; x }
Marshal.load(Marshal.dump(Array.new(500) { |i| { i.to_s => i.to_f } })).each { |hash| $kept << hash }
%w[set json].each { |library| require library } # while `require` is itself on the stack
GC.start
Foreign.stop
Foreign.verdict(("only #{$kept.size} objects" unless $kept.size > 12_500))
