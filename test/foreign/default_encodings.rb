# frozen_string_literal: true

# A program that sets the default encodings, as every Rails does: profiles are bytes all the same.
require_relative "support"

def größe(seconds)
  Foreign.burn(seconds)
end

Foreign.start
verbose, $VERBOSE = $VERBOSE, nil
Encoding.default_external = Encoding.default_internal = Encoding::UTF_8
$VERBOSE = verbose
größe(0.2)
Process.wait(fork { größe(0.1); exit 3 })
status = $?.exitstatus
Foreign.stop
Foreign.verdict(status == 3 ? nil : "the child ended with #{status}")
