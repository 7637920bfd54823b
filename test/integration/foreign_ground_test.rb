# frozen_string_literal: true

require "test_helper"
require "support/foreign_runs"

# What people reported about profilers, tried on this one: a program in test/foreign for each report (test/foreign/
# README.md), and here what its profile must show. Every profile that is written is read by a strict reader, which is
# report B35; that Sonde installs without a compiler, report B38, is in install_test.rb.
class ForeignGroundTest < Minitest::Test
  include TestHelper
  include ForeignRuns

  def test_b04_listings_are_whole
    foreign("b04_directory_listings", { "FOREIGN_FILES" => "600", "FOREIGN_LISTINGS" => "10" })
  end

  def test_b05_a_large_process_forks
    foreign("b05_fork_of_a_large_process", { "FOREIGN_MB" => "150" })
  end

  def test_b07_another_profiler_keeps_its_signal
    foreign("b07_two_profilers") { |run| assert_in_delta 0.92, run.seconds("cpu-time", ".burn"), 0.2 if wrapped?(run) }
  end

  def test_b08_no_child_is_ours
    foreign("b08_no_child_of_ours")
  end

  def test_b12_forks_amid_threads_end
    foreign("b12_forks_amid_threads", { "FOREIGN_JOBS" => "10" })
  end

  def test_b13_an_end_waits_for_nobody
    foreign("b13_slow_receivers", profile: false)
  end

  def test_b14_forks_leave_no_memory_behind
    foreign("b14_memory_of_forks", { "FOREIGN_JOBS" => "40" }) do |run|
      next unless wrapped?(run)

      assert_equal 79, run.profile.samples.map { |sample| sample.labels["pid"] }.compact.uniq.size
    end
  end

  def test_b17_code_that_is_gone_has_its_name
    foreign("b17_code_that_is_gone", { "FOREIGN_METHODS" => "60" }) do |run|
      gone = run.frames.select { |frame| frame.name =~ /gone_\d+\z/ }
      assert_operator gone.map(&:name).uniq.size, :>, 5
      gone.each { |frame| assert_equal "/nowhere/gone_#{frame.name[/\d+\z/]}.rb", frame.file }
      assert_operator run.names.grep(/\A#<Class>#inner_\d+\z/).uniq.size, :>, 3
    end
  end

  def test_b18_ractors_work_and_the_main_one_is_profiled
    skip "no Ractors before Ruby 3.0" unless defined?(Ractor)

    foreign("b18_ractors") { |run| assert_operator run.seconds("cpu-time", "fib"), :>, 0, run.mode }
  end

  def test_b19_code_that_is_compiled
    compilers = [[], yjit].compact
    compilers.each do |options|
      foreign("b19_compiled_code", { "FOREIGN_TURNS" => "150000" }, ruby: options) do |run|
        %w[leaf middle raiser].each do |name|
          seen = run.frames.select { |frame| frame.name.end_with?("##{name}") }
          refute_empty seen, "#{name}, #{options}, #{run.mode}"
          seen.each { |frame| assert_operator frame.line, :>, 0, "#{name}, #{options}, #{run.mode}" }
        end
      end
    end
    skip "this Ruby has no --yjit" if compilers.size == 1
  end

  def test_b20_finalizers_run_once
    foreign("b20_finalizers", { "FOREIGN_LOOPS" => "5" })
  end

  def test_b21_samples_amid_malloc
    foreign("b21_amid_malloc") { |run| assert_operator run.seconds("cpu-time"), :>, 0.1 }
  end

  def test_b22_jobs_that_start_and_stop
    foreign("b22_jobs_that_start_and_stop")
  end

  def test_b26_methods_that_are_refined_undefined_or_redefined_have_their_names
    foreign("b26_refined_methods") do |run|
      assert_includes run.names, "Plain#later_refined", run.mode
      assert_includes run.names, "Plain#mixed", run.mode
      %w[only_refined shout].each { |name| assert run.names.any? { |one| one.end_with?(name) }, "#{name}, #{run.mode}" }
      assert_empty run.names.grep(/\(unnamed\)|\(refined\)/)
      assert_empty(run.frames.select { |frame| frame.name.end_with?("refined") && !frame.file.end_with?("methods.rb") })
    end
  end

  def test_b27_a_template_is_one_method
    foreign("b27_templates", { "FOREIGN_RELOADS" => "400" }) do |run|
      of_the_view = run.frames.select { |frame| frame.name.include?("show_html_erb") }
      # Before Ruby 3.3 its block is told from it.
      assert_equal ["VIEWS#_app_views_orders_show_html_erb"],
                   of_the_view.map { |frame| frame.name.delete_prefix("block in ") }.uniq, run.mode
      assert_equal ["app/views/orders/show.html.erb"], of_the_view.map(&:file).uniq, run.mode
    end
  end

  def test_b28_code_without_a_path
    foreign("b28_code_without_a_path") do |run|
      found = run.frames.select { |frame| frame.name.end_with?("from_binary") }
      refute_empty found
      assert_empty(run.frames.select { |frame| frame.file.empty? && !frame.name.start_with?("(") })
    end
  end

  def test_b31_cpu_of_fibers_is_counted_once
    foreign("b31_cpu_of_fibers") do |run|
      used = run.note("used")
      assert_in_delta used, run.seconds("cpu-time"), used * 0.1 unless wrapped?(run)
      assert_in_delta 0.65, run.seconds("cpu-time", "fiber_burn"), 0.13
      assert_operator run.seconds("cpu-time", "fiber_burn"), :<=, used
    end
  end

  def test_b32_wall_time_of_other_threads
    foreign("b32_wall_time_of_other_threads") do |run|
      %w[sleep pipe burn].each do |part|
        truth = run.note(part)
        assert_in_delta truth, in_thread(run, "request", "request_#{part}"), truth * 0.1 + 0.03, "#{part}, #{run.mode}"
      end
      whole = %w[sleep pipe burn].sum { |part| run.note(part) }
      assert_in_delta whole, in_thread(run, "main", "Thread#value"), whole * 0.1 + 0.03, run.mode
    end
  end

  def test_b33_the_collector_is_where_it_was
    foreign("b33_gc_where_it_was") do |run|
      assert_equal 0, run.seconds("gc-time", "quiet"), run.mode
      spent = run.note("spent")
      exact = GC.respond_to?(:total_time) # else sampled, and these are few
      allowed = exact ? (spent * 0.85)..(run.note("took") * 1.15) : 0.005..(run.note("took") * 1.5)
      assert_includes allowed, run.seconds("gc-time", "collecting"), run.mode
      assert_operator run.seconds("gc-time"), :<=, run.seconds("wall-time")
    end
  end

  def test_b36_programs_too_short_to_be_sampled
    foreign("b36_too_short_to_be_sampled")
  end

  def test_b37_the_library_itself
    foreign("b37_the_library_itself")
  end

  def test_b39_places_that_cannot_be_written
    foreign("b39_places_that_cannot_be_written")
  end

  def test_b40_children_of_every_kind
    copy = File.join(@directory, "a path with é and spaces")
    FileUtils.mkdir_p(copy)
    FileUtils.cp_r([File.expand_path("../../lib", __dir__), File.expand_path("../../exe", __dir__)], copy)
    foreign("b40_children_of_every_kind", sonde: File.join(copy, "exe/sonde"))
  end

  private

  def wrapped?(run)
    run.mode == :wrapped
  end

  # Seconds of wall time of a thread, below a method whose name ends so.
  def in_thread(run, thread, method)
    run.profile.total("wall-time") do |sample|
      sample.labels["thread name"] == thread && sample.frames.any? { |frame| frame.name.end_with?(method) }
    end / 1e9
  end

  # A Ruby that was built without it takes the option and says so.
  def yjit
    _, err, status = Open3.capture3(RUBY, "--yjit", "-e", "")
    ["--yjit"] if status.success? && err.empty?
  end
end
