# frozen_string_literal: true

# A method that was on recorded stacks was refined afterwards, and had neither name nor path any more: the profile could
# not be written.
# Right: alive, and all of these methods are in the profile under their names.
require_relative "support"

class Plain
  def later_refined(seconds)
    Foreign.burn(seconds)
  end

  def mixed(seconds)
    Foreign.burn(seconds)
  end
end

module Fine
  refine(Plain) do
    def only_refined(seconds)
      mixed(seconds)
      Foreign.burn(seconds)
    end
  end

  refine(String) do
    def shout(seconds)
      Foreign.burn(seconds)
      upcase
    end
  end
end

using Fine

Foreign.start
Plain.new.later_refined(0.1)
Module.new { refine(Plain) { def later_refined(seconds); end } } # it is in the samples already
Plain.new.only_refined(0.06)
"a".shout(0.06)
Plain.class_eval { undef_method :mixed }
Plain.class_eval { remove_method :later_refined }
class Plain
  def later_refined(seconds)
    Foreign.burn(seconds)
  end
end
Plain.new.later_refined(0.05)
GC.start
Foreign.stop
Foreign.verdict
