# frozen_string_literal: true

# Loaded by -r, through RUBYOPT, into every Ruby that is started below `sonde run`; whatever program that is, and
# whatever Ruby. So it does nothing that could be noticed: it loads only files beside it, by require_relative; it needs
# neither RubyGems nor the standard library; it prints nothing; and it does nothing at all in a Ruby that Sonde is not
# made for, or where `sonde run` did not leave its variables.
if ENV["SONDE_RUN_DIRECTORY"] && RUBY_ENGINE == "ruby" &&
   (RUBY_VERSION.split(".").map { |part| part.to_i } <=> [2, 7]) >= 0
  require_relative "recording"
  Sonde::Run::Recording.begin_in_this_process
end
