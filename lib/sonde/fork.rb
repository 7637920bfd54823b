# frozen_string_literal: true

module Sonde
  # Tells the rest of Sonde what becomes of this process. It is the only file that changes methods of Ruby's own, and it
  # does so only when profiling begins ({install}), once:
  #
  #   Process._fork                          Ruby 3.1 and later; every fork goes through it, but that of Process.daemon
  #   fork, Process.fork                     before 3.1
  #   Process.daemon, IO.popen, exec, exit!  everywhere
  #
  # Three things are told, to every block that was given to {on}:
  #
  #   :child  this is a forked child; of all threads only the one that forked is left
  #   :leave  the next step is one after which nothing is left of what this process remembers: exec, exit!, daemon,
  #           the end of a child's block of IO.popen("-")
  #   :stay   that step was not taken: exec failed, or a test has put something harmless in its place
  #
  # A process that forks in C code, and one that the kernel kills, tell nothing.
  module Fork
    # Programs (and the gems that test them) replace these constants by others. These are the real ones.
    Process = ::Process
    Thread = ::Thread

    PATH = __FILE__
    PROBLEMS = [StandardError, ScriptError, NoMemoryError].freeze
    NEVER = { Object => :never }.freeze
    RUBY_TELLS = Process.respond_to?(:_fork)
    private_constant :PATH, :PROBLEMS, :NEVER, :RUBY_TELLS

    @listeners = { child: [], leave: [], stay: [] }
    @installed = false

    class << self
      def on(event, &block)
        @listeners.fetch(event) << block
      end

      # Answers whether the methods are in place.
      def install
        return true if @installed

        @installed = true
        install_forks
        replace(IO.singleton_class, Popen, %i[popen])
        replace(Process.singleton_class, Replacements, %i[daemon])
        [Kernel, Kernel.singleton_class, Process.singleton_class].each do |owner|
          replace(owner, Replacements, %i[exec exit!])
        end
        true
      rescue FrozenError
        false # a program that allows no changes is profiled without its children
      end

      # Calls the blocks. What goes wrong in one neither stops the others nor reaches the program.
      def tell(event)
        Thread.handle_interrupt(NEVER) do
          begin
            child_begins(true) if event == :child # what is opened now counts from the fork
            @listeners.fetch(event).each { |block| call(block) }
          ensure
            child_begins(false) if event == :child
          end
        end
      rescue *PROBLEMS
        nil # in a Ractor, which may not even look at our variables
      end

      # Takes our own lines out of the backtrace: an uncaught exception looks as it would without us.
      def hide(error)
        own = []
        kept = (error.backtrace || []).flat_map do |line|
          if own?(line)
            own << line
            next []
          end
          lines = own.empty? ? [line] : [at_place_of(line, own), line]
          own = []
          lines
        end
        error.set_backtrace(kept) unless kept.empty?
        error
      end

      # In a child, where Ruby has no _fork.
      def tell_old_child
        tell(:child) unless RUBY_TELLS
      end

      private

      def child_begins(begins)
        Native.child_begins(begins) if Native.loaded?
      end

      def install_forks
        if RUBY_TELLS
          Process.singleton_class.prepend(Forks)
        else
          [Kernel, Kernel.singleton_class, Process.singleton_class].each { |owner| replace(owner, OldForks, %i[fork]) }
        end
      end

      # Under another name the method itself stays, so that nothing warns of a method redefined. (To prepend a module
      # would not do: on 2.7 what includes Kernel does not see it, and where a test replaces `exec`, ours would still be
      # in front.)
      def replace(owner, source, names)
        names.each do |name|
          visibility = owner.private_method_defined?(name) ? :private : :public
          owner.send(:alias_method, :"sonde_#{name}", name)
          owner.send(:private, :"sonde_#{name}")
          owner.send(:define_method, name, source.instance_method(name))
          owner.send(visibility, name)
        end
      end

      def call(block)
        block.call
      rescue *PROBLEMS
        nil # each listener notes its own troubles; what is left has no place to go
      end

      def own?(line)
        line.start_with?(PATH)
      end

      # A method written in C has the place of its caller.
      def at_place_of(line, group)
        "#{line[/\A.*?:\d+/]}#{group.last[/:in .*\z/]}"
      end
    end

    # Prepended: what Ruby's documentation asks for.
    module Forks
      def _fork
        pid = super
        Fork.tell(:child) if pid == 0 # rubocop:disable Style/NumericPredicate
        pid
      end
    end

    # Before Ruby 3.1.
    module OldForks
      def fork(&block)
        return sonde_fork { OldForks.run_child(block) } if block

        pid = sonde_fork
        Fork.tell(:child) if pid.nil?
        pid
      end

      def self.run_child(block)
        Fork.tell(:child)
        block.call
      rescue StandardError => e
        raise Fork.hide(e)
      end
    end

    # IO.popen("-") is a fork too, and where it has a block, Ruby ends the child after it without running at_exit.
    module Popen
      ruby2_keywords def popen(*arguments, &block)
        return sonde_popen(*arguments, &block) unless Popen.forks?(arguments)
        return sonde_popen(*arguments) { |io| io ? block.call(io) : Popen.run_child(block) } if block

        io = sonde_popen(*arguments)
        Fork.tell_old_child if io.nil?
        io
      rescue StandardError => e
        raise Fork.hide(e)
      end

      # Before the command there may be an environment.
      def self.forks?(arguments)
        command = arguments.find { |argument| !(Hash === argument) } # rubocop:disable Style/CaseEquality
        String === command && command == "-" # rubocop:disable Style/CaseEquality
      end

      def self.run_child(block)
        Fork.tell_old_child
        block.call(nil)
        Fork.tell(:leave)
      end
    end

    # None of these comes back, unless something went wrong.
    module Replacements
      ruby2_keywords def exec(*arguments)
        Fork.tell(:leave)
        sonde_exec(*arguments)
      rescue StandardError => e
        raise Fork.hide(e)
      ensure
        Fork.tell(:stay)
      end

      ruby2_keywords def exit!(*arguments)
        Fork.tell(:leave)
        sonde_exit!(*arguments)
      rescue StandardError => e
        raise Fork.hide(e)
      ensure
        Fork.tell(:stay)
      end

      # The process that called it is gone, a child goes on in its place.
      ruby2_keywords def daemon(*arguments)
        pid = Process.pid
        Fork.tell(:leave)
        sonde_daemon(*arguments)
      rescue StandardError => e
        raise Fork.hide(e)
      ensure
        Fork.tell(Process.pid == pid ? :stay : :child)
      end
    end
  end
end
