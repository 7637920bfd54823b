# frozen_string_literal: true

# In containers some system calls are forbidden: those that read a process's memory, set a scheduler or send signals
# to threads. Each is taken away from a child here, and with it everything the child starts.
# Right: the program runs as ever; where Sonde cannot work without the call, it says so and does not.
require_relative "support"
require "fiddle"
require "open3"
require "rbconfig"

# Numbers on x86-64.
CALLS = { "process_vm_readv" => 310, "sched_setscheduler" => 144, "sched_setattr" => 314, "prctl" => 157,
          "setpriority" => 141, "membarrier" => 324, "gettid" => 186, "memfd_create" => 319, "perf_event_open" => 298,
          "tgkill" => 234, "ptrace" => 101, "eventfd2" => 290, "mlock" => 149 }.freeze
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
MODE_FILTER = 2
EPERM = 1
CODE = "x = Array.new(20_000) { |i| i.to_s }.join.size; t = Thread.new { sleep 0.05; x += 1 }; " \
       "300_000.times { |i| i.to_s }; t.join; print x"

# Takes the call away from this process, for ever.
def forbid(number)
  prctl = Fiddle::Function.new(Fiddle.dlopen(nil)["prctl"], [Fiddle::TYPE_INT] + [Fiddle::TYPE_LONG] * 4,
                               Fiddle::TYPE_INT)
  instructions = [[0x20, 0, 0, 0], [0x15, 0, 1, number], [0x06, 0, 0, 0x00050000 | EPERM], [0x06, 0, 0, 0x7fff0000]]
  program = instructions.map { |one| one.pack("SCCL") }.join
  header = [instructions.size, Fiddle::Pointer[program].to_i].pack("Sx6Q")
  prctl.call(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
  prctl.call(PR_SET_SECCOMP, MODE_FILTER, Fiddle::Pointer[header].to_i, 0, 0).zero?
end

def run_without(number)
  reader, writer = IO.pipe
  pid = fork do
    exit!(99) unless forbid(number)
    exec({ "FOREIGN_PROFILE" => nil }, RbConfig.ruby, *Foreign.child(CODE), out: writer, err: writer)
  end
  writer.close
  [reader.read, Process.wait2(pid).last.exitstatus]
end

unless RbConfig::CONFIG["host_cpu"] == "x86_64" && run_without(400).last != 99 # a call that is none
  puts "SKIP: system calls cannot be forbidden here"
  exit
end
Foreign.start
bad = CALLS.map do |name, number|
  out, status = run_without(number)
  next if status.zero? && out.sub(/^Sonde cannot profile this Ruby: .*\n/, "") == "88891"

  "without #{name}: #{status}, #{out[0, 300].inspect}"
end
Foreign.stop
Foreign.verdict(bad)
