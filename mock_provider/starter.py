"""The script that `mock-provider new` begins with: every common key once, with a comment.

Room: pure; the command comes in.
"""

from __future__ import annotations

STARTER = """\
# yaml-language-server: $schema=mock-script-1.json
#   (mock-provider schema > mock-script-1.json; then editors complete and check this file)
#
# Try it:   mock-provider run {name} -- python client.py
# Check it: mock-provider check {name}

version: 1
model: m-small                       # echoed in answers unless a step says otherwise

conversations:
  main:
    # Which requests belong here. Remove `when` if this is the only conversation.
    when: {{user_contains: "weather"}}
    steps:
      # One step is one request and its answer. Steps are taken in order.
      - expect:                      # what the request must look like; a difference fails the play
          last_user: "weather"       # bare text: contains. Also {{equals: }}, {{regex: }}, {{absent: true}}
          tools: [get_weather]       # these are offered
        reply:
          - reasoning: "The tool knows."
          - tool_call: {{name: get_weather, arguments: {{city: Paris}}}}
        usage: {{input: 120, output: 18}}

      # The provider fails once; a client that tries again gets the next step.
      # Causes: rate_limit, quota, overloaded, server_error, context_overflow, moderation, bad_key, no_model, gateway
      - http_error: {{cause: rate_limit, retry_after: 0}}

      - expect:
          tool_result: {{name: get_weather, regex: "(?P<degrees>-?[0-9]+) degrees"}}
        reply: "It is {{{{match.degrees}}}} degrees in Paris."
        stream: {{split: words}}       # how the answer is cut; also first_ms, every_ms, tokens_per_s

  # Some programs make extra requests, for a title or a summary: they never take a step of another conversation.
  title:
    background: true
    when: {{system: "title"}}
    steps:
      - reply: "Weather"
        repeat: forever
"""


def starter(name: str) -> str:
    """The starter script, for a file of this name."""
    return STARTER.format(name=name)
