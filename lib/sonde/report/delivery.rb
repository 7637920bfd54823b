# frozen_string_literal: true

require_relative "../clock"
require_relative "background"
require_relative "cost"
require_relative "failure"
require_relative "nap"
require_relative "voice"

module Sonde
  module Report
    # What waits to be taken by one exporter, and the thread that hands it over.
    #
    # Each exporter has its own, so that a backend that is slow keeps nobody else waiting. What waits is bounded, in
    # number and in bytes; past that the oldest is dropped and counted.
    #
    # There is no Mutex: all steps on the Array are one under the GVL, so that a signal handler and a forked child find
    # it usable at every moment.
    class Delivery
      Item = Struct.new(:parts, :bytes, :began, :attempts)

      WAITING = 8 # profiles
      BYTES = 33_554_432 # of all that waits
      # Seconds before the second attempt; doubled with each, then drawn at random from the upper half.
      FIRST_PAUSE = 1.0
      LONGEST_PAUSE = 60.0
      LONGEST_REQUEST = 3600.0 # a Retry-After beyond this is taken for this

      # Counted by reason.
      REASONS = %i[queue_full refused failed too_old unencodable at_exit].freeze

      attr_reader :exporter

      def initialize(exporter, voice: Voice.new, clock: nil, random: Random.new)
        @exporter = exporter
        @voice = voice
        @clock = clock || -> { Clock.monotonic / 1e9 }
        @random = random
        reset
      end

      # In a forked child: what waits is the parent's, and so are its thread and its counts.
      def reset
        @waiting = []
        @sending = nil
        @thread = nil
        @nap = Nap.new
        @finishing = false
        @delivered = @retries = 0
        @dropped = REASONS.map { |reason| [reason, 0] }.to_h
        @last_error = @last_error_at = @last_delivery_at = nil
        @random = Random.new # two children of one parent must not draw the same pauses
        @exporter.after_fork if @exporter.respond_to?(:after_fork)
      end

      # Takes one profile as the parts that the exporter made of it. Any thread.
      def push(parts)
        return if parts.empty?

        @waiting << Item.new(parts, parts.sum(&:bytesize), now, 0)
        drop_oldest while @waiting.size > WAITING || @waiting.size > 1 && waiting_bytes > BYTES
        work
      end

      # What the exporter cannot even put into its format.
      def unencodable(error)
        drop(:unencodable, "cannot be put into its format (#{error.class}: #{error.message})")
      end

      # Ends the thread once all that waits was tried once more; nothing is retried from here on.
      def finish
        @finishing = true
        @thread&.alive? ? @nap.wake : @waiting.any? && work
      end

      # Waits until it is done, at most until that moment of the clock; what is left then is lost.
      def wait(deadline)
        thread = @thread
        while thread&.alive? && now < deadline
          @nap.wake
          thread.join([0.05, [deadline - now, 0.001].max].min)
        end
        abandon(thread) if thread&.alive?
      end

      # After a finish that did not end the process.
      def resume
        @finishing = false
      end

      def status
        { name: @exporter.name, target: @exporter.target, delivered: @delivered, retries: @retries,
          waiting: @waiting.size + (@sending ? 1 : 0), waiting_bytes: waiting_bytes + (@sending&.bytes || 0),
          dropped: @dropped.dup, last_error: @last_error, last_error_at: @last_error_at,
          last_delivery_at: @last_delivery_at }
      end

      private

      def now
        @clock.call
      end

      # By the real clock.
      def time
        Time.at(Clock.real / 1_000_000_000)
      end

      def waiting_bytes
        @waiting.sum(&:bytes)
      end

      def work
        thread = @thread
        return @nap.wake if thread&.alive?

        @thread = Background.start("sonde reporter #{@exporter.name}") { run }
      rescue ThreadError => e
        note("no thread can be started (#{e.message})")
      end

      def run
        cost = Cost.new
        loop do
          cost.count
          item = @sending = @waiting.shift
          if item
            send_all(item)
            @sending = nil
          elsif @finishing
            break
          else
            @nap.take
          end
        end
      rescue *PROBLEMS => e
        note("the delivery stopped (#{e.class}: #{e.message})")
      end

      def send_all(item)
        until item.parts.empty?
          break unless try(item)
        end
        return unless item.parts.empty?

        @delivered += 1
        @last_delivery_at = time
      end

      # Hands one part over. Answers whether to go on with this profile.
      def try(item)
        return drop(:too_old, "were too old to be taken") if too_old?(item)

        item.attempts += 1
        @exporter.deliver(item.parts.first)
        item.bytes -= item.parts.shift.bytesize
        item.attempts = 0
        true
      rescue Failure => e
        failed(item, e)
      rescue *PROBLEMS => e
        failed(item, Failure.new("#{e.class}: #{e.message}"))
      end

      def too_old?(item)
        limit = @exporter.max_age
        limit && now - item.began > limit
      end

      def failed(item, failure)
        note(failure.message)
        return drop(:refused, "were refused: #{failure.message}", failure.message) unless failure.again?
        return drop(:at_exit, "could not be delivered before the end: #{failure.message}") if @finishing
        return drop(:failed, "could not be delivered: #{failure.message}") if item.attempts >= @exporter.attempts

        @retries += 1
        pause(item.attempts, failure.after)
        return true unless @waiting.size >= WAITING && !@finishing

        drop(:queue_full, "were dropped, since too many wait for it")
      end

      # Ends early when nothing will be retried any more: then the rest is tried once, now.
      def pause(attempts, after)
        longest = [FIRST_PAUSE * 2**(attempts - 1), LONGEST_PAUSE].min
        seconds = after ? [after, LONGEST_REQUEST].min : longest / 2 + @random.rand * longest / 2
        finish = now + seconds
        @nap.take(finish - now) while now < finish && !@finishing
      end

      def drop_oldest
        @waiting.shift
        drop(:queue_full, "were dropped, since too many wait for it")
      end

      # Answers false: no more of this profile.
      def drop(reason, sentence, topic = nil)
        @dropped[reason] += 1
        @voice.once([@exporter.name, reason, topic], "profiles for #{@exporter.name} #{sentence}. This is said once; " \
                                                     "Sonde.status counts what is lost")
        false
      end

      def note(message)
        @last_error = message
        @last_error_at = time
      end

      # The deadline is over.
      def abandon(thread)
        lost = @waiting.size + (@sending ? 1 : 0)
        thread.kill
        @waiting.clear
        @sending = nil
        lost.times { drop(:at_exit, "could not be delivered before the end") }
      end
    end
  end
end
