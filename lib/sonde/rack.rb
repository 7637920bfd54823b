# frozen_string_literal: true

require_relative "../sonde"
require_relative "report/voice"

module Sonde
  # Rack middleware: the samples of each request have the label "trace endpoint", such as "GET /orders/:id", and
  # requests are counted by it.
  #
  #   require "sonde/rack"
  #   use Sonde::Rack                      # config.ru, Sinatra
  #   config.middleware.use Sonde::Rack    # Rails
  #
  # The route is what the framework says when it has answered (Rails, Sinatra, Grape, Hanami, or what the program itself
  # puts into env["sonde.endpoint"]); it then holds for the whole request, also for what was sampled before. Where
  # nobody says it, it is the path with everything in it replaced that looks like an identifier.
  class Rack
    LABEL = "trace endpoint"
    ENDPOINT = "sonde.endpoint"
    IDENTIFIER = %r{\A(?:\d+|\h{8}-\h{4}-\h{4}-\h{4}-\h{12}|\h{16,}|(?=.*\d)[\w.~=-]{20,}|.{40,})\z}.freeze
    SEGMENTS = 6 # of a path without a route; what follows is "..."
    SAID = Report::Voice.new
    private_constant :SAID

    def initialize(app)
      @app = app
    end

    def call(env)
      return @app.call(env) unless Sonde.supported?

      begin
        entered = Labels.enter([LABEL, Labels.text(guess(env))])
        @app.call(env)
      ensure
        finish(entered, env)
      end
    end

    # @api private
    def self.normalize(path)
      segments = path.to_s.split("/").reject(&:empty?)
      shown = segments.first(SEGMENTS).map { |segment| IDENTIFIER.match?(segment) ? ":id" : segment }
      shown << "..." if segments.size > SEGMENTS
      "/#{shown.join("/")}"
    end

    private

    def finish(entered, env)
      endpoint = Labels.text(endpoint(env))
      Labels.amend(entered, LABEL, endpoint)
      Requests.count(endpoint)
    ensure
      Labels.leave(entered)
    end

    # The request goes on, whatever a framework says: then it is counted where it was guessed to belong.
    def endpoint(env)
      route(env) || guess(env)
    rescue StandardError => e
      SAID.once(:route, "a request's route is not understood (#{e.class}); its path is shown instead")
      guess(env)
    end

    def guess(env)
      "#{env["REQUEST_METHOD"]} #{Rack.normalize("#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}")}"
    end

    def route(env)
      env[ENDPOINT] || sinatra(env) || rails(env) || grape(env) || hanami(env)
    end

    # "GET /orders/:id"
    def sinatra(env)
      env["sinatra.route"]
    end

    # Since 7.1 Rails tells the pattern; before, the controller and the action.
    def rails(env)
      pattern = env["action_dispatch.route_uri_pattern"]
      return with_method(env, pattern.sub("(.:format)", "")) if pattern

      parameters = env["action_dispatch.request.path_parameters"]
      parameters && parameters[:controller] && "#{parameters[:controller]}##{parameters[:action]}"
    end

    def grape(env)
      route = env["grape.routing_args"] && env["grape.routing_args"][:route_info]
      route && with_method(env, route.path.to_s.sub(/\(.*\z/, ""))
    end

    def hanami(env)
      action = env["hanami.action_instance"]
      action && action.class.name
    end

    def with_method(env, path)
      "#{env["REQUEST_METHOD"]} #{path}"
    end
  end
end
