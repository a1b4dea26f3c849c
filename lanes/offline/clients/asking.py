"""What a client is asked to do, and what it says was answered: the same words for every client in every language.

Room: pure; the table of features, the drivers and the tests come in. The drivers in Node speak the same in JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from mock_provider.json_values import Json

MODEL = "m-small"
KEY = "sk-mock"
SYSTEM = "Speak of the weather."
QUESTION = "What is the weather in Ghent and in Rome?"
TOOL = "weather"
TOOL_TEXT = "The weather of a city."
TOOL_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
DATA_SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
MAX_TOKENS = 4096
THINKING_TOKENS = 2048  # over the least that the provider takes, 1024, and below MAX_TOKENS
MAX_ROUNDS = 4  # more than any script here has steps, so that a client that goes in circles ends


def weather(city: str) -> str:
    """The one tool."""
    return f"{city}: rain"


@dataclass(frozen=True, slots=True)
class Ask:
    """One task for a client.

    Shape: with `embeds` it is about vectors of these texts and about nothing else. `way` is which of its addresses a
    client of two shall use. Units: retries after the first try; timeout_s for the client's own limit on silence.
    """

    url: str
    way: str
    is_stream: bool = False
    has_tool: bool = False
    wants_data: bool = False
    thinks: bool = False
    embeds: tuple[str, ...] = ()
    retries: int = 0
    timeout_s: float = 60

    def to_json(self) -> dict[str, Json]:
        """The task as a driver in another language gets it, with the words that every driver uses."""
        words: dict[str, Json] = {
            "model": MODEL,
            "key": KEY,
            "system": SYSTEM,
            "question": QUESTION,
            "tool": {"name": TOOL, "text": TOOL_TEXT, "schema": TOOL_SCHEMA},
            "data_schema": DATA_SCHEMA,
            "max_tokens": MAX_TOKENS,
            "thinking_tokens": THINKING_TOKENS,
            "max_rounds": MAX_ROUNDS,
        }
        return asdict(self) | words


@dataclass(slots=True)
class Trouble:
    """How a client failed.

    Shape: kind is `status` (the provider refused), `timeout`, `connection` (it broke) or `answer` (no answer in it);
    status 0 where the client names none.
    """

    kind: str
    status: int
    message: str


@dataclass(slots=True)
class Said:
    """What the program that uses a client gets to know.

    Shape: filled in as it comes, so that what came before a failure is there. `pieces` counts the pieces of a streamed
    text. `usage` has `input` (all of it, cached included), `output`, `cached` and `reasoning`, as far as the client
    tells them.
    """

    text: str = ""
    pieces: int = 0
    thought: str = ""
    calls: list[tuple[str, Mapping[str, Json]]] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    data: Mapping[str, Json] | None = None
    vectors: list[list[float]] = field(default_factory=list)
    trouble: Trouble | None = None

    def take(self, piece: str | None) -> None:
        """Add a piece of a streamed text."""
        if piece:
            self.text += piece
            self.pieces += 1

    def count(self, **tokens: int | None) -> None:
        """Note the token counts that the client tells."""
        self.usage.update({name: count for name, count in tokens.items() if count is not None})


_BROKEN = frozenset(
    {
        "RemoteProtocolError",
        "ReadError",
        "ConnectError",
        "APIConnectionError",
        "ProtocolError",
        "ResponseStreamingError",
    }
)


def _status_of(error: BaseException) -> int:
    """The status that an error names, in one of the places where clients have it; 0 for none."""
    for name in ("status_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int) and value >= 400:
            return value
    response = getattr(error, "response", None)
    found = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
    return found if isinstance(found, int) else 0


def trouble_of(error: BaseException) -> Trouble:
    """Say in the common words how a Python client failed, by the errors that led to it."""
    chain = list(_chain(error))
    names = [type(one).__name__ for one in chain]
    message = " | ".join(f"{name}: {one}" for name, one in zip(names, chain, strict=True))
    status = next(filter(None, map(_status_of, chain)), 0)
    if any("Timeout" in name for name in names):
        return Trouble("timeout", 0, message)
    if any(name in _BROKEN for name in names):
        return Trouble("connection", 0, message)
    return Trouble("status" if status >= 400 else "answer", status if status >= 400 else 0, message)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__
