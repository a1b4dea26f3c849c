"""The features that every client is tried with: what is played, what is asked, what has to come out.

Room: pure; the tests and the table in the documents come in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lanes.offline.clients.asking import TOOL
from lanes.offline.clients.published import Client
from mock_provider.json_values import Json, JsonObject
from mock_provider.replies import cut_off, error_event, http_error, reasoning, script, stall, step, text, tool_call

WORDS = "It rains in Ghent: ü, 雨, 🌧."
IN_PIECES: JsonObject = {"split": {"chars": 3}}
GHENT: JsonObject = {"city": "Ghent"}
ROME: JsonObject = {"city": "Rome"}
DATA: JsonObject = {"city": "Ghent", "degrees": 7}
TEXTS = ("rain in Ghent", "sun in Rome")
USAGE: JsonObject = {"input": 210, "output": 31, "cached": 128, "reasoning": 12}
RETRY_AFTER_S = 1  # more than any of the clients waits on its own before its first retry
PATIENCE_S = 2  # a busy machine takes a second to send what comes before the silence


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of the table.

    Shape: `ask` holds the arguments of `Ask`; `play` makes the script for a client; `said` the facts that must come
    out, by name, as `facts_of` in the test tells them; `requests` how many must arrive. `verdict` counts the
    steps left over, the requests unmatched and the invalid ones that the mock provider must report.
    Units: least_s is the least time that the client may take.
    """

    name: str
    says: str
    play: Callable[[Client], JsonObject]
    said: Mapping[str, object]
    ask: Mapping[str, object] = field(default_factory=dict)
    requests: int = 1
    least_s: float = 0
    verdict: tuple[int, int, int] = (0, 0, 0)


def _steps(*steps: Mapping[str, Json], **more: Json) -> Callable[[Client], JsonObject]:
    return lambda _client: script(*steps, **more)


def _thinking(*steps: Mapping[str, Json]) -> Callable[[Client], JsonObject]:
    return lambda client: script(*steps, flavour=client.thinking_flavour)


def _data(client: Client) -> JsonObject:
    """The data where the client looks for it: in the text, or in the arguments of a tool it made for this."""
    spelled = tool_call(client.data_tool, DATA) if client.data_tool else text('{"city": "Ghent", "degrees": 7}')
    return script(step(spelled))


def _out_of_quota(client: Client) -> JsonObject:
    """No money left, as often as the client asks."""
    lack = client.lacks.get("out of quota")
    return script({"http_error": "quota", "repeat": lack.requests if lack else 1})


_TWO_CALLS = (
    step(text("Let me look. "), tool_call(TOOL, GHENT), tool_call(TOOL, ROME), stream=IN_PIECES),
    step(
        "Take a coat.",
        expect={"tool_result": [{"contains": "Ghent: rain"}, {"contains": "Rome: rain"}]},
        stream=IN_PIECES,
    ),
)
_STREAM = {"is_stream": True}
_TOOL = {"has_tool": True}
_STATUS_400 = {"kind": "status", "status": 400}

FEATURES: tuple[Feature, ...] = (
    Feature("answer", "a whole answer", _steps(step(text(WORDS))), {"text": WORDS}),
    Feature(
        "stream",
        "an answer in pieces, cut by the network inside characters of several bytes",
        _steps(step(text(WORDS), expect={"stream": True}, stream=IN_PIECES | {"bytes_per_write": 5})),
        {"text": WORDS, "is_in_pieces": True},
        _STREAM,
    ),
    Feature(
        "tool",
        "a tool called, its result sent back",
        _steps(
            step(tool_call(TOOL, GHENT), expect={"tools": [TOOL]}),
            step("Take a coat.", expect={"tool_result": {"contains": "Ghent: rain"}}),
        ),
        {"text": "Take a coat.", "calls": [(TOOL, GHENT)]},
        _TOOL,
        requests=2,
    ),
    Feature(
        "parallel tools",
        "two calls in one answer, both results sent back together",
        _steps(*_TWO_CALLS),
        {"calls": [(TOOL, GHENT), (TOOL, ROME)], "ends_with": "Take a coat."},
        _TOOL,
        requests=2,
    ),
    Feature(
        "tools in a stream",
        "two calls whose arguments come in pieces of three characters",
        _steps(*_TWO_CALLS),
        {"calls": [(TOOL, GHENT), (TOOL, ROME)], "ends_with": "Take a coat.", "is_in_pieces": True},
        _TOOL | _STREAM,
        requests=2,
    ),
    Feature("structured output", "data that fit a schema", _data, {"data": DATA}, {"wants_data": True}),
    Feature(
        "reasoning",
        "thinking beside the answer",
        _thinking(step(reasoning("Look first."), text(WORDS))),
        {"thought": "Look first.", "text": WORDS},
        {"thinks": True},
    ),
    Feature(
        "reasoning in a stream",
        "thinking in pieces before the answer",
        _thinking(step(reasoning("Look first."), text(WORDS), stream=IN_PIECES)),
        {"thought": "Look first.", "text": WORDS},
        {"thinks": True} | _STREAM,
    ),
    Feature(
        "usage",
        "tokens in, out, from the cache and for thinking",
        _steps(step(text(WORDS), usage=USAGE)),
        {"usage": USAGE},
    ),
    Feature(
        "usage in a stream",
        "the same at the end of a stream",
        _steps(step(text(WORDS), usage=USAGE)),
        {"usage": USAGE},
        _STREAM,
    ),
    Feature(
        "embeddings",
        "vectors, number by number as the provider made them",
        _steps(step("never asked", optional=True)),
        {"are_vectors": True},
        {"embeds": TEXTS},
    ),
    Feature(
        "retry-after",
        "429 with retry-after: the client waits that long and asks again",
        _steps(http_error(429, cause="rate_limit", retry_after=RETRY_AFTER_S), step(text(WORDS))),
        {"text": WORDS},
        {"retries": 2},
        requests=2,
        least_s=RETRY_AFTER_S,
    ),
    Feature(
        "server error",
        "500: the client asks again",
        _steps({"http_error": "server_error"}, step(text(WORDS))),
        {"text": WORDS},
        {"retries": 2},
        requests=2,
    ),
    Feature(
        "overloaded",
        "503, or 529 with Anthropic: the client asks again, for a stream too",
        _steps({"http_error": "overloaded"}, step(text(WORDS), stream=IN_PIECES)),
        {"text": WORDS},
        {"retries": 2} | _STREAM,
        requests=2,
    ),
    Feature(
        "out of quota",
        "no money left: the client does not ask again",
        _out_of_quota,
        {"is_refused_for_quota": True},
        {"retries": 2},
    ),
    Feature(
        "wrong key",
        "401: the client does not ask again and shows the provider's words",
        _steps(step("never said", optional=True), api_key="sk-other"),
        {"trouble": {"kind": "status", "status": 401}},
        {"retries": 2},
        verdict=(0, 0, 1),
    ),
    Feature(
        "unmatched",
        "a request that is not in the script: the client does not ask again and shows the difference",
        _steps(step("never said", expect={"last_user": "the sea"})),
        {"trouble": _STATUS_400, "shows_difference": True},
        {"retries": 2},
        verdict=(1, 1, 0),
    ),
    Feature(
        "time-out",
        "nothing comes: the client gives up at its own limit",
        _steps(step(fault="stall")),
        {"trouble": {"kind": "timeout", "status": 0}},
        {"timeout_s": PATIENCE_S},
    ),
    Feature(
        "time-out in a stream",
        "a stream falls silent: what came is there, and the client gives up",
        _steps(step(text("It rains"), stall())),
        {"trouble": {"kind": "timeout", "status": 0}, "text": "It rains"},
        {"timeout_s": PATIENCE_S} | _STREAM,
    ),
    Feature(
        "broken stream",
        "the connection closes in the middle: what came is there, and the client says that it broke",
        _steps(step(text("It rains"), cut_off())),
        {"trouble": {"kind": "connection", "status": 0}, "text": "It rains"},
        _STREAM,
    ),
    Feature(
        "error in a stream",
        "an error event after status 200: what came is there, and the client fails with the provider's words",
        _steps(step(text("It rains"), error_event("The model broke down."))),
        {"has_failed": True, "text": "It rains", "shows_words": "The model broke down."},
        _STREAM,
    ),
)
