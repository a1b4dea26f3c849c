"""What every dialect offers, and the neutral reply it renders.

Room: pure; the dialects implement it, the engine uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from mock_provider.asked import Asked, AskedCall, AskedMessage, Refusal
from mock_provider.faults import Item
from mock_provider.json_values import Json, JsonObject
from mock_provider.kept import Kept
from mock_provider.pieces import count_tokens, size_bytes, tokens_of
from mock_provider.steps import Part, Reasoning, RefusalText, Script, StreamPlan, Text, ToolCall, Usage
from mock_provider.values import value

Headers: TypeAlias = "tuple[tuple[str, str], ...]"


@value
class SaidCall:
    """A tool call with its final id and arguments text. Shape: id None leaves the id out."""

    id: str | None
    name: str
    arguments: str
    index: int


@value
class Counts:
    """Token counts of one answer."""

    input: int
    output: int
    cached: int
    reasoning: int


@value
class Reply:
    """A step's answer with everything filled in.

    Shape: parts in order, a ToolCall standing for the next of calls; finish None leaves it out; counts None, too.
    usage_times is how often a stream says the counts, where they have an event of their own.
    """

    parts: tuple[Part, ...]
    calls: tuple[SaidCall, ...]
    finish: str | None
    counts: Counts | None
    stream: StreamPlan
    id: str
    model: str
    created: int
    flavour: str
    usage_times: int = 1

    @property
    def text(self) -> str:
        """All answer text."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def reasoning(self) -> str:
        """All thinking text."""
        return "".join(part.text for part in self.parts if isinstance(part, Reasoning))

    @property
    def refusal(self) -> str:
        """All refusal text."""
        return "".join(part.text for part in self.parts if isinstance(part, RefusalText))

    def as_message(self, *, has_ids: bool = True) -> AskedMessage:
        """The message a client will send back as history; without the ids of calls where clients drop them."""
        calls = tuple(AskedCall(call.id or "" if has_ids else "", call.name, call.arguments) for call in self.calls)
        text = self.text or self.refusal
        return AskedMessage("assistant", (text,) if text else (), calls)


@value
class Received:
    """One request whose address is known.

    Shape: arguments holds what stood in the braces of the address, unquoted; form is the address's own;
    kept holds answers that this request may name. headers have lower-case names.
    """

    body: Json
    headers: Mapping[str, str]
    query: str
    script: Script
    kept: Kept
    form: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)


@value
class Address:
    """What is special about one address of a dialect.

    Shape: form tells the dialect which of its addresses was used. Without answer a step of the script answers, else
    this function does; takes_body False means that a body is not looked at.
    """

    answer: Callable[[Received], JsonObject | Refusal] | None = None
    form: str = ""
    takes_body: bool = True


PLAIN = Address()


@value
class Dialect:
    """One wire format, everything the provider has to know of it but where it is found.

    Shape: addresses are those of its place that have something special, the others are PLAIN. check_access and read
    refuse like the provider; whole, stream and error render.
    usual_error gives type, code and message of a status; id_kind stands in the ids of answers; request_id_header ""
    means none. read may also answer by itself, where no step is asked for.
    keep, where there is one, notes a reply in the kept answers. has_call_ids False: clients may leave the ids of calls
    out of the history. stream_head gives content type and further headers where streams differ in them; error_headers
    says in headers what kind of error it is. keep_alive is what it sends in a stream to show that it is there.
    answer_key, where there is one, gives all that whole looks at beside the reply: for equal ones, equal replies are
    spelled alike, with ids as they are. Such answers are rendered once. stream_key says the same of stream, in which
    counts of tokens stand only with wants_usage or in a flavour. is_wordblind: requests have `messages`, and no rule
    but those about `response_format` looks at what a user's message says when it is one text that is not empty.
    sound_bytes, where there is one, gives the size of all that is said in `messages` that break no rule of their own,
    None for others: requests that differ in such messages alone are read and answered alike, their counts aside, if no
    `response_format` is there.
    """

    name: str
    id_kind: str
    request_id_header: str
    content_type_stream: str
    addresses: Mapping[str, Address]
    check_access: Callable[[Mapping[str, str], str, Script], Refusal | None]
    read: Callable[[Received], Asked | Refusal | JsonObject]
    whole: Callable[[Asked, Reply], bytes]
    stream: Callable[[Asked, Reply], Iterable[Item]]
    error: Callable[[Refusal, Script], JsonObject]
    usual_error: Callable[[int, str | None], tuple[str, str | None, str]]
    keep: Callable[[Asked, Reply, Kept], None] | None = None
    has_call_ids: bool = True
    stream_head: Callable[[Asked], tuple[str, Headers]] | None = None
    keep_alive: bytes = b": keep-alive\n\n"
    error_headers: Callable[[Refusal], Headers] | None = None
    answer_key: Callable[[Asked], Hashable] | None = None
    stream_key: Callable[[Asked], Hashable] | None = None
    is_wordblind: bool = False
    sound_bytes: Callable[[Sequence[Json]], int | None] | None = None


def headers_of_stream(dialect: Dialect, asked: Asked) -> tuple[str, Headers]:
    """The content type of a streamed answer, and the headers that go with it."""
    return dialect.stream_head(asked) if dialect.stream_head else (dialect.content_type_stream, ())


def headers_of_error(dialect: Dialect, refusal: Refusal) -> Headers:
    """All headers of an error."""
    return (*(dialect.error_headers(refusal) if dialect.error_headers else ()), *refusal.headers)


def model_names(script: Script) -> tuple[str, ...]:
    """The models that a script lets be listed."""
    return script.models or ((script.model,) if script.model else ())


def count_input(asked: Asked) -> int:
    """Count the tokens of everything that was sent as conversation, by the local rule."""
    size = asked.said_bytes
    if size is None:
        size = size_bytes(text for message in asked.messages for text in message.said())
    return tokens_of(size) or 1


def count_usage(usage: Usage, asked: Asked, parts: Sequence[Part], calls: Sequence[SaidCall]) -> Counts | None:
    """Count tokens by the local rule wherever the script does not say a number; None when it says none."""
    if usage.is_absent:
        return None
    said = [part.text for part in parts if isinstance(part, Text | RefusalText)]
    said += [call.name + call.arguments for call in calls]
    thought = [part.text for part in parts if isinstance(part, Reasoning)]
    reasoning = usage.reasoning if usage.reasoning is not None else count_tokens(*thought)
    counted = count_tokens(*said) + reasoning
    given_input = usage.input if usage.input is not None else max(count_input(asked), usage.cached or 0)
    output = usage.output if usage.output is not None else counted
    return Counts(given_input, output, min(usage.cached or 0, given_input), min(reasoning, output))


def finish_of(finish: str | None, parts: Sequence[Part]) -> str | None:
    """Choose the finish reason a step leaves open: tool_calls after tool calls, else stop."""
    if finish != "":
        return finish
    return "tool_calls" if any(isinstance(part, ToolCall) for part in parts) else "stop"
