# frozen_string_literal: true

require "test_helper"
require "etc"
require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# Builds the gem and installs it for real, into an empty GEM_HOME, in every situation in which building the extension
# fails. The promise is the same each time: the install succeeds, the gem loads, and one sentence says why it cannot
# profile.
class InstallTest < Minitest::Test
  include TestHelper

  TOOLS = %w[sh env uname cat rm mkdir touch sed grep cp mv ln chmod make].freeze

  def setup
    @directory = Dir.mktmpdir("sonde install")
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  def test_a_normal_install_profiles
    need_extension
    install("normal")
    assert_supported("normal")
  end

  def test_directories_with_spaces_and_letters_that_are_not_ascii
    need_extension
    home = "gem home é ü"
    install(home)
    assert_supported(home)
  end

  def test_a_copy_of_the_libraries_in_the_extensions_directory_is_enough
    need_extension
    home = "not copied"
    install(home)
    libraries = Dir.glob("gems/sonde-*/lib/sonde/*.so", base: File.join(@directory, home))
    refute_empty libraries
    FileUtils.rm(libraries.map { |path| File.join(@directory, home, path) })
    assert_supported(home)
  end

  def test_no_compiler
    install("no compiler", "PATH" => path_without_compiler)
    assert_unsupported("no compiler", /no working C compiler was found when the gem was installed/)
  end

  def test_a_compiler_that_fails_from_the_start
    install("broken", "CC" => script("false-cc", "echo 'cc: broken on purpose' >&2; exit 1"))
    assert_unsupported("broken", /no working C compiler was found/)
  end

  def test_a_compiler_that_fails_on_the_sources
    compiler = script("picky-cc", <<~SH)
      case "$*" in *loader.c*|*extension.c*) echo "picky-cc: internal error" >&2; exit 1;; esac
      exec #{RbConfig::CONFIG["CC"]} "$@"
    SH
    output = install("picky", "CC" => compiler)
    assert_unsupported("picky", /compilation failed when the gem was installed/, output)
  end

  def test_missing_headers
    hide = File.join(@directory, "hide.rb")
    File.write(hide, 'require "rbconfig"; RbConfig::CONFIG["rubyhdrdir"] = "/no/such/directory"')
    # RUBYOPT cannot name a path with a space.
    FileUtils.mkdir_p(directory = Dir.mktmpdir)
    FileUtils.mv(hide, directory)
    install("no headers", "RUBYOPT" => "-r#{directory}/hide.rb")
    assert_unsupported("no headers", /the headers of Ruby #{Regexp.escape(RUBY_VERSION)} were missing.*ruby-dev/)
  ensure
    FileUtils.rm_rf(directory)
  end

  def test_the_wish_of_the_user
    install("unwanted", "SONDE_NO_EXTENSION" => "1")
    assert_unsupported("unwanted", /SONDE_NO_EXTENSION=1 was set/)
  end

  # RubyGems runs make whatever extconf.rb writes, so this one fails; but with a sentence that says what is missing.
  def test_no_make_is_said_clearly
    output, status = try_install("no make", "PATH" => path_without_compiler(TOOLS - ["make"]))
    skip "RubyGems installs without make here" if status.success?
    assert_match(/make was not found\. RubyGems cannot install .* without make: install make\./, output)
  end

  private

  def install(home, environment = {})
    output, status = try_install(home, environment)
    assert status.success?, output
    output
  end

  def try_install(home, environment = {})
    ours = { "GEM_HOME" => File.join(@directory, home), "MAKEFLAGS" => "-j#{Etc.nprocessors}" }
    environment = clean_environment.merge(ours).merge(environment)
    Open3.capture2e(environment, RbConfig.ruby, "-S", gem_command, "install", "--local", "--no-document", "--verbose",
                    gem_file)
  end

  def gem_command
    File.join(RbConfig::CONFIG["bindir"], RbConfig::CONFIG["ruby_install_name"].sub("ruby", "gem"))
  end

  def gem_file
    @gem_file ||= begin
      file = File.join(@directory, "sonde.gem")
      output, status = Open3.capture2e(clean_environment, RbConfig.ruby, "-S", gem_command, "build", "sonde.gemspec",
                                       "--output", file, chdir: ROOT)
      assert status.success?, output
      file
    end
  end

  PROGRAM = <<~'RUBY'
    require "sonde"
    $stdout.sync = true
    puts Sonde.supported?, Sonde.unsupported_reason.inspect
    puts Sonde.start.inspect, Sonde.start.inspect, Sonde.stop.inspect[0, 16]
    puts Sonde.profile { 1 }.class
    puts $LOADED_FEATURES.grep(/sonde_native|sonde_loader/).size
  RUBY

  def run_program(home, *arguments)
    environment = clean_environment.merge("GEM_HOME" => File.join(@directory, home))
    out, err, status = Open3.capture3(environment, RbConfig.ruby, "-w", *arguments, "-e", PROGRAM, chdir: "/")
    assert status.success?, out + err
    [out.lines.map(&:chomp), err]
  end

  def assert_supported(home)
    out, err = run_program(home)
    assert_equal ["true", "nil", "true", "false", "#<Sonde::Profile", "Sonde::Profile", "1"], out
    assert_equal "", err
  end

  def assert_unsupported(home, reason, output = "")
    out, err = run_program(home)
    assert_equal "false", out[0], output
    assert_match(/\A"Sonde cannot profile this Ruby: /, out[1])
    assert_match(reason, out[1])
    refute_match(/\\n/, out[1])
    assert_equal ["false", "false", "nil", "Sonde::Profile"], out[2, 4]
    assert_equal 1, err.lines.size, err
    assert_match(reason, err)
  end

  def script(name, body)
    # A compiler's name cannot hold a space.
    @scripts ||= Dir.mktmpdir
    path = File.join(@scripts, name)
    File.write(path, "#!/bin/sh\n#{body}\n")
    File.chmod(0o755, path)
    path
  end

  def path_without_compiler(tools = TOOLS)
    directory = File.join(@directory, "bin #{tools.size}")
    FileUtils.mkdir_p(directory)
    tools.each do |tool|
      path = ENV["PATH"].split(":").map { |entry| File.join(entry, tool) }.find { |file| File.executable?(file) }
      File.symlink(path, File.join(directory, tool)) if path
    end
    directory
  end
end
