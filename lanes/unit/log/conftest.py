"""Builders of log events for the tests of this folder.

Room: pytest loads it; each test of the log takes its events from the `make` fixture.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cached_property

import pytest
from hypothesis import strategies as st

from harness.log.events import (
    AssistantChunk,
    AssistantMessage,
    Cause,
    CompactionEnd,
    CompactionStart,
    CompactionSummary,
    EndSeed,
    Event,
    ForeignPayload,
    Header,
    InboxSpliced,
    LlmRetry,
    LlmRetryStarted,
    Payload,
    RemovedItem,
    RequestConfig,
    RequestContext,
    RequestHeader,
    SessionHeader,
    StepEnd,
    StepStart,
    SubagentDescriptor,
    ToolCall,
    ToolErrorInfo,
    ToolResult,
    TurnEnd,
    TurnReason,
    TurnStart,
    UserMessage,
)
from harness.log.inbox import Inbox, claim_payloads, insert_payload
from harness.log.session_log import SessionLog
from harness.model.call import ToolSchema
from harness.model.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ContentBlock,
    ImageBlock,
    Message,
    MessageId,
    ModelSource,
    PluginSource,
    ReasoningBlock,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
)


class Maker:
    """Builds events and logs with the fewest words."""

    def log(
        self, session: str = "s1", *, times: Sequence[int] = (), check: object = None, **fields: object
    ) -> SessionLog:
        header = SessionHeader(SessionId(session), 1, **fields)  # type: ignore[arg-type] # header fields by name
        return SessionLog(header, clock=self.clock(times), check=check)  # type: ignore[arg-type] # a check or None

    def clock(self, times: Sequence[int] = ()) -> Callable[[], int]:
        ticks = itertools.chain(times, itertools.count(times[-1] + 1 if times else 1000))
        return lambda: next(ticks)

    def user(self, text: str = "hi", message_id: str = "m1") -> Message:
        return Message(MessageId(message_id), "user", (TextBlock(text),), UserSource())

    def notice(self, text: str = "note", message_id: str = "n1") -> Message:
        return Message(MessageId(message_id), "user", (TextBlock(text),), PluginSource("guard", "notice"))

    def call(self, call_id: str = "c1", name: str = "read_file", arguments: str = "{}") -> ToolCallBlock:
        return ToolCallBlock(CallId(call_id), name, arguments)

    def assistant(
        self, *blocks: ContentBlock, turn: int = 1, step: int = 1, message_id: str = "a1", usage: Usage | None = None
    ) -> AssistantMessage:
        message = Message(MessageId(message_id), "assistant", blocks, ModelSource("mock", "m"))
        return AssistantMessage(turn, step, message, usage)

    def says(self, text: str, **fields: object) -> AssistantMessage:
        return self.assistant(TextBlock(text), **fields)  # type: ignore[arg-type] # fields of assistant by name

    def chunk(self, text: str = "x", *, index: int = 0, turn: int = 1, step: int = 1) -> AssistantChunk:
        return AssistantChunk(turn, step, TextDelta(index, text))

    def started(self, call: ToolCallBlock, *, turn: int = 1, step: int = 1) -> ToolCall:
        return ToolCall(turn, step, call.id, call.name, call.arguments)

    def result(
        self,
        call_id: str = "c1",
        text: str = "done",
        *,
        turn: int = 1,
        step: int = 1,
        error: ToolErrorInfo | None = None,
        meta: object = None,
        message_id: str | None = None,
    ) -> ToolResult:
        block = ToolResultBlock(CallId(call_id), (TextBlock(text),), is_error=error is not None)
        message = Message(
            MessageId(message_id or f"r-{turn}-{step}-{call_id}"), "user", (block,), ToolSource(CallId(call_id))
        )
        return ToolResult(turn, step, message, error, meta)  # type: ignore[arg-type] # tests hand in bad meta too

    def end(self, turn: int = 1) -> TurnEnd:
        return TurnEnd(turn, TurnReason("completed"))

    def header(self) -> RequestHeader:
        return RequestHeader(Header(RequestConfig("mock", "m"), "be brief"), "initial")

    def prompt(self, log: SessionLog, text: str = "hi", message_id: str = "m1") -> Message:
        """Queue a prompt."""
        message = self.user(text, message_id)
        log.append(InboxSpliced("next-turn", 0, inserted=(message,)))
        return message

    def open_step(self, log: SessionLog, turn: int = 1, text: str = "hi") -> None:
        """Queue a prompt, start a turn, claim it and enter its first step."""
        message = self.user(text, f"m{turn}")
        log.append(insert_payload(Inbox(), message, "next-turn"))
        log.append(TurnStart(turn))
        for claim, _ in claim_payloads(Inbox((message,)), turn, True):
            log.append(claim)
        log.append(StepStart(turn, 1))
        log.append(UserMessage(message))

    def turn(self, log: SessionLog, turn: int = 1, answer: str = "ok", chunks: int = 0) -> None:
        """A whole simple turn."""
        self.open_step(log, turn)
        log.append(self.header())
        seqs = tuple(log.append(self.chunk(f"{at} ", turn=turn)).seq for at in range(chunks))
        log.append(self.says(answer, turn=turn, message_id=f"a{turn}"), source_event_seqs=seqs)
        log.append(StepEnd(turn, 1))
        log.append(self.end(turn))

    def types(self, events: Sequence[Event]) -> list[str]:
        return [event.type for event in events]

    def samples(self) -> list[Payload]:
        """One payload of each type, with every optional field filled somewhere."""
        failure = Failure("slow down", "RATE_LIMIT", 429, 1500, "req-1")
        usage = Usage(1, 2, 3, 4, 5)
        image = ImageBlock(AttachmentRef("sha256:00", "image/png", 9, 2, 3, "a.png"))
        call = self.call("c1", "read_file", '{"path":"a"}')
        state = {"items": [1, {"deep": None}], "signature": "s"}
        model = Message(
            MessageId("a1"),
            "assistant",
            (ReasoningBlock("hm"), TextBlock("ok"), call),
            ModelSource("mock", "m", state),
        )
        pictures = Message(MessageId("m2"), "user", (TextBlock("see"), image), PluginSource("p", "relay"))
        chunks: list[Chunk] = [
            BlockStart(0, "text"),
            TextDelta(0, "ok"),
            ReasoningDelta(1, "hm"),
            ToolCallDelta(2, CallId("c1"), "{", "read_file"),
            ToolCallDelta(2, CallId("c1"), "}"),
            BlockEnd(0, TextBlock("ok")),
            BlockEnd(2, ToolCallBlock(CallId(""), "", "")),
            UsageChunk(usage),
            Finish("stop", None, state),
            Finish("error", failure),
        ]
        return [
            TurnStart(1),
            TurnEnd(1, TurnReason("completed")),
            TurnEnd(2, TurnReason("aborted", cause=Cause("hook", "policy"))),
            TurnEnd(3, TurnReason("error", failure=failure)),
            StepStart(1, 1),
            StepEnd(1, 1),
            UserMessage(self.user()),
            UserMessage(pictures),
            *(AssistantChunk(1, 1, chunk) for chunk in chunks),
            AssistantMessage(1, 1, model, usage),
            self.assistant(),
            ToolCall(1, 1, CallId("c1"), "read_file", "{"),
            self.result("c1", "text", meta={"exit": 0}),
            self.result("c2", "boom", error=ToolErrorInfo("ToolError", "UNKNOWN_TOOL")),
            RequestHeader(
                Header(
                    RequestConfig("mock", "m", 0.5, 100, ("END",), "low"),
                    "be brief",
                    (ToolSchema("read_file", "reads", {"type": "object", "required": ["path"]}),),
                    {"maxTokens": 8},
                ),
                "change",
            ),
            self.header(),
            RequestContext("mock", "m", 8000),
            LlmRetry("r1", 1, 1, "mock", "normal", "k", 1, 500, failure, 2),
            LlmRetryStarted("r1", 1, 1, 1),
            InboxSpliced("next-turn", 0, inserted=(self.user(),)),
            InboxSpliced("next-step", 2, inserted=(self.notice(),), wakes=False),
            InboxSpliced("next-turn", 0, removed=(RemovedItem(MessageId("m1"), "claimed", 1),)),
            InboxSpliced("next-turn", 0, (RemovedItem(MessageId("m1"), "replaced"),), (self.user(),), "canceled"),
            EndSeed(),
            CompactionStart("k1", "pressure"),
            CompactionSummary("k1", {"tokens": 9}),
            CompactionEnd("k1", "done"),
            SubagentDescriptor({"name": "child"}),
            ForeignPayload("other/thing", {"x": [1, 2]}),
        ]

    def append(self, log: SessionLog, payload: Payload) -> Event:
        """Append with whatever the payload's type wants beside it."""
        return log.append(payload, ignorable=isinstance(payload, ForeignPayload))

    @cached_property
    def texts(self) -> st.SearchStrategy[str]:
        """Any text at all, halves of surrogate pairs included."""
        return st.text(st.characters(codec=None, categories=None), max_size=12)

    @cached_property
    def json_values(self) -> st.SearchStrategy[object]:
        leaves = (
            st.none()
            | st.booleans()
            | st.integers(-(2**53) + 1, 2**53 - 1)
            | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: str(number) != "-0.0")
            | self.texts
        )
        return st.recursive(
            leaves,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(self.texts, inner, max_size=3),
            max_leaves=8,
        )

    @cached_property
    def json_objects(self) -> st.SearchStrategy[dict[str, object]]:
        return st.dictionaries(self.texts, self.json_values, max_size=3)

    @cached_property
    def deltas(self) -> st.SearchStrategy[AssistantChunk]:
        """Stream pieces that often continue the run before them."""
        index, step = st.integers(0, 1), st.integers(1, 2)
        calls = st.sampled_from([CallId("c1"), CallId("c2"), CallId("")])
        names = st.sampled_from([None, "read_file", ""])
        return st.one_of(
            st.builds(lambda s, i, t: AssistantChunk(1, s, TextDelta(i, t)), step, index, self.texts),
            st.builds(lambda s, i, t: AssistantChunk(1, s, ReasoningDelta(i, t)), step, index, self.texts),
            st.builds(
                lambda s, i, c, t, n: AssistantChunk(1, s, ToolCallDelta(i, c, t, n)),
                step,
                index,
                calls,
                self.texts,
                names,
            ),
        )

    @cached_property
    def payloads(self) -> st.SearchStrategy[Payload]:
        """Any payload that may be appended by itself, its texts and JSON values drawn at random."""
        text = self.texts
        word = text.filter(bool)
        blocks = st.lists(st.builds(TextBlock, text), max_size=2).map(tuple)
        usage = st.builds(Usage, st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(0, 9))
        failure = st.builds(
            Failure, text, word, st.none() | st.integers(100, 599), st.none() | st.integers(1, 9), st.none() | text
        )
        source = st.just(UserSource()) | st.builds(PluginSource, word, st.sampled_from([None, "notice", "recall"]))
        message = st.builds(Message, word.map(MessageId), st.just("user"), blocks, source)
        replay = st.none() | self.json_objects
        reply = st.lists(st.builds(TextBlock, text) | st.builds(ReasoningBlock, text), max_size=2).flatmap(
            lambda some: (
                st.builds(
                    lambda call_id, name, arguments: (*some, ToolCallBlock(CallId(call_id), name, arguments)),
                    word,
                    text,
                    text,
                )
                | st.just(tuple(some))
            )
        )
        number = st.integers(1, 3)
        return st.one_of(
            self.deltas,
            st.builds(UserMessage, message),
            st.builds(
                AssistantMessage,
                number,
                number,
                st.builds(
                    Message,
                    word.map(MessageId),
                    st.just("assistant"),
                    reply,
                    st.builds(ModelSource, word, word, replay),
                ),
                st.none() | usage,
            ),
            st.builds(
                lambda turn, call_id, result, meta: self.result(call_id, result, turn=turn, meta=meta),
                number,
                word,
                text,
                replay,
            ),
            st.builds(lambda turn, found: TurnEnd(turn, TurnReason("error", failure=found)), number, failure),
            st.builds(ToolCall, number, number, word.map(CallId), text, text),
            st.builds(lambda found, state: AssistantChunk(1, 1, Finish("stop", None, state)), number, replay),
            st.builds(lambda value: AssistantChunk(1, 1, UsageChunk(value)), usage),
            st.builds(
                lambda target, at, items: InboxSpliced(target, at, inserted=items),
                st.sampled_from(["next-turn", "next-step"]),
                st.integers(0, 3),
                st.lists(message, min_size=1, max_size=2).map(tuple),
            ),
            st.builds(SubagentDescriptor, self.json_objects),
            st.builds(CompactionSummary, word, self.json_objects),
            st.builds(ForeignPayload, word.map(lambda name: f"other/{name}"), self.json_objects),
            st.sampled_from(self.samples()),
        )


@pytest.fixture(scope="session")
def make() -> Maker:
    """The builders."""
    return Maker()
