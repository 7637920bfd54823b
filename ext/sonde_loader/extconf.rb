# frozen_string_literal: true

require_relative "../extconf_support"

ExtconfSupport.build("sonde_loader") do
  ExtconfSupport.common_flags
  have_library("dl", "dlopen", "dlfcn.h") # part of libc on newer systems
  ExtconfSupport.strict_flags
  create_makefile("sonde/sonde_loader.#{ExtconfSupport::TAG}")
end
