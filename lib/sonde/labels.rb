# frozen_string_literal: true

module Sonde
  # Labels of the program's own: what is given becomes a flat list for the engine, which knows which one holds in which
  # fiber (ext/sonde_native/collect/collect_labels.h).
  module Labels
    LENGTH = 200
    MOST = 32
    INTEGERS = (-(1 << 63)...(1 << 64)).freeze
    NUL = "\0"

    class << self
      # Runs the block with the labels of the list: [key, value, key, value ...].
      def with(list)
        entered = enter(list)
        yield
      ensure
        leave(entered)
      end

      # Begins a block of labels; answers what {leave} and {amend} want. The program runs without labels where there can
      # be none: a thread may be frozen.
      def enter(list)
        Native.labels_enter(list)
      rescue FrozenError
        nil
      end

      def leave(entered)
        Native.labels_leave(entered) if entered
      rescue FrozenError
        nil
      end

      # Changes a label for all samples of a block, those that there are already too.
      def amend(entered, key, value)
        Native.labels_amend(entered, key, text(value)) if entered
      end

      # A Hash as such a list.
      def list(labels)
        labels.each_with_object([]) do |(key, value), list|
          value = shown(value)
          list << text(key) << value unless value.nil? || list.size >= 2 * MOST
        end
      end

      def here
        Native.labels_list.each_slice(2).to_h
      end

      def carry(block)
        list = Native.labels_list
        return block if list.empty?

        proc { |*arguments, &inner| with(list) { block.call(*arguments, &inner) } }
      end

      # As the engine takes it: UTF-8, without NUL, of bounded length.
      def text(value)
        string = value.to_s
        string = string.encode(Encoding::UTF_8, invalid: :replace, undef: :replace) unless plain?(string)
        string = string.scrub("?") unless string.valid_encoding?
        string = string.delete(NUL) if string.include?(NUL)
        string.size > LENGTH ? string[0, LENGTH] : string
      end

      private

      def shown(value)
        case value
        when nil then nil
        when Integer then INTEGERS.cover?(value) ? value : text(value)
        else
          string = text(value)
          string unless string.empty?
        end
      end

      def plain?(string)
        string.encoding == Encoding::UTF_8 || string.encoding == Encoding::US_ASCII ||
          string.encoding == Encoding::BINARY
      end
    end
  end
end
