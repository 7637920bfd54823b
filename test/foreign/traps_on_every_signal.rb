# frozen_string_literal: true

# A program that handles every signal there is: a profiler's own signals must not come to it, and its own must come,
# each once, whatever the profiler does meanwhile.
require_relative "support"

# Those that Ruby keeps for itself, and those that cannot be handled.
RESERVED = %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM].freeze

def settle
  limit = Foreign.now + 60
  sleep 0.01 until yield || Foreign.now > limit
end

Foreign.start
counts = Hash.new(0)
numbers = Signal.list.reject { |name, number| RESERVED.include?(name) || number.zero? }.values.uniq
numbers.each do |number|
  trap(number) do
    Foreign.burn(0.005)
    counts[number] += 1
  end
end
Foreign.burn(0.2)
unasked = counts.keys.map { |number| Signal.signame(number) }
numbers.each do |number|
  Process.kill(number, Process.pid)
  settle { counts[number].positive? }
  Foreign.burn(0.005)
end
Foreign.burn(0.1)
wrong = numbers.reject { |number| counts[number] == 1 }
Foreign.stop
Foreign.verdict(unasked.map { |name| "#{name} came without being sent" },
                wrong.map { |number| "#{Signal.signame(number)} came #{counts[number]} times" })
