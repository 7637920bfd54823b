# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "timeout"
require "tmpdir"
require_relative "pprof_decoder"

# For tests that run the programs of test/foreign: each plain, below `sonde run`, and profiled by itself. What it prints
# and how it ends must be the same, and both profiles must be readable by a strict reader.
module ForeignRuns
  RUBY = RbConfig.ruby
  FOREIGN = File.expand_path("../foreign", __dir__)
  SONDE = File.expand_path("../../exe/sonde", __dir__)
  LIMIT = 300 # seconds for one run; the machine may be busy

  # profile: decoded; nil for a plain run. notes: what the program told by Foreign.note, by key.
  Run = Struct.new(:mode, :out, :err, :status, :profile, :notes) do
    def names
      profile.samples.flat_map { |sample| sample.frames.map(&:name) }.uniq
    end

    def frames
      profile.samples.flat_map(&:frames).uniq
    end

    # Seconds of a sample type, below a method whose name ends so, or in all.
    def seconds(type, method = nil)
      profile.total(type) { |sample| method.nil? || sample.frames.any? { |frame| frame.name.end_with?(method) } } / 1e9
    end

    def note(key)
      notes.fetch(key).to_f
    end
  end

  def setup
    need_extension
    @directory = Dir.mktmpdir("foreign")
  end

  def teardown
    FileUtils.rm_rf(@directory) if @directory
  end

  # Runs a program, checks what holds for every one, and yields each profiled run.
  #
  # settings: its environment. ruby: options for Ruby. sonde: the path of another `sonde`. modes: other than all.
  # profile: false where a program may end without one. judges_itself: false for one that does not print OK; what it
  # prints must be the same all the same.
  def foreign(program, settings = {}, ruby: [], sonde: SONDE, modes: %i[wrapped inside], profile: true,
              judges_itself: true)
    runs = ([:plain] + modes).map do |mode|
      Thread.new { run_program(mode, File.join(FOREIGN, "#{program}.rb"), settings, ruby, sonde) }
    end
    plain, *profiled = runs.map(&:value)
    check_plain(program, plain) if judges_itself
    profiled.each do |run|
      assert_equal [plain.out, plain.err, ending(plain.status)], [run.out, run.err, ending(run.status)],
                   "#{program}, #{run.mode}"
      assert run.profile, "#{program}, #{run.mode}: no profile" if profile
      yield run if block_given? && run.profile
    end
  end

  private

  def check_plain(program, plain)
    skip plain.out[/\ASKIP: (.*)/, 1] if plain.out.start_with?("SKIP: ")
    assert_equal ["OK\n", "", 0], [plain.out, plain.err, ending(plain.status)], "#{program}, plain"
  end

  def run_program(mode, path, settings, ruby, sonde)
    file = File.join(@directory, "#{mode} #{File.basename(path)}.pb.gz")
    notes = "#{file}.notes"
    environment = clean_environment.merge("FOREIGN" => (mode == :inside ? "inside" : nil), "FOREIGN_PROFILE" => file,
                                          "FOREIGN_NOTES" => notes).merge(settings)
    command = [RUBY, "-w", *ruby, path]
    command = [RUBY, sonde, "run", "-o", file, "--quiet", "--", *command] if mode == :wrapped
    out, err, status = Timeout.timeout(LIMIT) { Open3.capture3(environment, *command) }
    decoded = File.exist?(file) ? PprofDecoder.read(file) : nil
    Run.new(mode, out, err, status, decoded, File.exist?(notes) ? File.readlines(notes).map(&:split).to_h : {})
  end

  def ending(status)
    status.signaled? ? Signal.signame(status.termsig) : status.exitstatus
  end
end
