"""The same fault in every dialect: what it does to the events, and how the provider's own errors read."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from mock_provider.actions import Action, Delay, Die, Head, Send
from mock_provider.causes import CAUSES, GATEWAY, form_of
from mock_provider.dialects.table import DIALECTS
from mock_provider.incoming import Incoming
from mock_provider.json_values import Json, JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import error_event, fault, script, step, text, tool_call
from mock_provider.script import build_script
from mock_provider.steps import DEADLY_KINDS, HARM_KINDS

USER: JsonObject = {"role": "user", "content": "x"}
WORDS: JsonObject = {"split": "words"}
ONCE: JsonObject = {"output": 4321}


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a client of one dialect asks. Shape: stream_path and whole_path differ where the path says which it is."""

    whole_path: str
    stream_path: str
    body: JsonObject
    headers: dict[str, str]
    says_stream: bool = True


BEARER = {"authorization": "Bearer sk-test-0001"}
GEMINI = "/v1beta/models/m"
SPELLINGS = {
    "openai_chat": Spelling(
        "/v1/chat/completions",
        "/v1/chat/completions",
        {"model": "m", "messages": [USER], "stream_options": {"include_usage": True}},
        BEARER,
    ),
    "openai_responses": Spelling("/v1/responses", "/v1/responses", {"model": "m", "input": "x"}, BEARER),
    "anthropic_messages": Spelling(
        "/v1/messages",
        "/v1/messages",
        {"model": "m", "max_tokens": 99, "messages": [USER]},
        {"x-api-key": "sk-test-0001", "anthropic-version": "2023-06-01"},
    ),
    "gemini": Spelling(
        f"{GEMINI}:generateContent",
        f"{GEMINI}:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
        {"x-goog-api-key": "sk-test-0001"},
        says_stream=False,
    ),
    "ollama": Spelling("/api/chat", "/api/chat", {"model": "m", "messages": [USER]}, {}),
    "bedrock": Spelling(
        "/model/m/converse",
        "/model/m/converse-stream",
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        BEARER,
        says_stream=False,
    ),
}
DIALECT_NAMES = [name for name in SPELLINGS if name in DIALECTS]
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECT_NAMES)


def ask(played: JsonObject, dialect: str, *, is_stream: bool = True) -> list[Action]:
    """What the answer to one request does; ids are those of one script, so that two answers can be compared."""
    spelling = SPELLINGS[dialect]
    body = dict(spelling.body)
    if spelling.says_stream:
        body["stream"] = is_stream
        if not is_stream:
            body.pop("stream_options", None)
    path = spelling.stream_path if is_stream else spelling.whole_path
    headers = {**spelling.headers, "content-type": "application/json"}
    mock = Mock(replace(build_script(played), digest="one for all"))
    exchange = mock.handle(Incoming("POST", path, headers, json.dumps(body).encode()))
    return [action for action, _ in exchange.plan]


def sends(actions: list[Action]) -> list[bytes]:
    return [action.data for action in actions if isinstance(action, Send)]


def head_of(actions: list[Action]) -> Head:
    return next(action for action in actions if isinstance(action, Head))


def plain(dialect: str) -> tuple[list[bytes], int]:
    """The events of an answer without fault, and the place behind its first piece."""
    actions = ask(script(step("one two three", stream=WORDS)), dialect)
    events = [action for action in actions if isinstance(action, Send)]
    return [event.data for event in events], next(at for at, event in enumerate(events) if event.is_piece) + 1


def struck(dialect: str, kind: str, after: int = 1) -> list[Action]:
    return ask(script(step("one two three", stream=WORDS, fault={"kind": kind, "after": after})), dialect)


@EVERY_DIALECT
@pytest.mark.parametrize("kind", HARM_KINDS)
def test_a_harm_concerns_the_next_event_and_no_other(dialect: str, kind: str) -> None:
    events, at = plain(dialect)
    harmed = events[at]
    middle = len(harmed) // 2
    expected = {
        "duplicate": [harmed, harmed, events[at + 1]],
        "swap": [events[at + 1], harmed],
        "drop": [events[at + 1]],
        "bad_utf8": [harmed[:middle] + b"\xff\xfe" + harmed[middle:], events[at + 1]],
    }[kind]
    assert sends(struck(dialect, kind)) == [*events[:at], *expected, *events[at + 2 :]]


@EVERY_DIALECT
def test_a_truncated_event_is_the_last_and_the_stream_ends_cleanly(dialect: str) -> None:
    events, at = plain(dialect)
    actions = struck(dialect, "truncate")
    assert (sends(actions), actions[-1]) == (
        [*events[:at], events[at][: (len(events[at]) + 1) // 2]],
        Die("end"),
    )


@EVERY_DIALECT
@pytest.mark.parametrize("kind", ["reset", "cut", "end", "stall", "garbage"])
def test_a_deadly_fault_lets_the_pieces_before_it_out(dialect: str, kind: str) -> None:
    events, at = plain(dialect)
    actions = struck(dialect, kind)
    assert (sends(actions), actions[-1]) == (events[:at], Die(kind))  # type: ignore[arg-type] # one of the kinds


@EVERY_DIALECT
def test_signs_of_life_go_on_where_the_dialect_has_them(dialect: str) -> None:
    _, at = plain(dialect)
    fault_at: JsonObject = {"kind": "keep_alive", "after": 1, "every_ms": 7}
    actions = ask(script(step("one two three", stream=WORDS, fault=fault_at)), dialect)
    after = actions[at + 1 :]  # behind head and events
    if dialect in ("ollama", "bedrock"):
        assert after == [Die("stall")]
    else:
        own = {"anthropic_messages": b'event: ping\ndata: {"type":"ping"}\n\n', "gemini": b"\r\n"}
        sign = own.get(dialect, b": keep-alive\n\n")
        assert after[:4] == [Delay(7), Send(sign), Delay(7), Send(sign)]


@EVERY_DIALECT
@pytest.mark.parametrize("cause", [cause for cause in CAUSES if cause != GATEWAY])
def test_a_cause_is_told_in_the_words_of_the_provider(dialect: str, cause: str) -> None:
    form = form_of(cause, dialect, "openai")
    actions = ask(script(step(http_error=cause)), dialect, is_stream=False)
    told: JsonObject = json.loads(sends(actions)[0])
    error = told.get("error", told)
    if isinstance(error, dict):
        error = error["message"]
    assert (head_of(actions).status, error) == (form.status, form.message)


@EVERY_DIALECT
def test_a_page_of_a_gateway_is_no_dialects_word(dialect: str) -> None:
    actions = ask(script(step(http_error="gateway")), dialect)
    head = head_of(actions)
    assert (head.status, dict(head.headers)["content-type"], sends(actions)[0][:6]) == (502, "text/html", b"<html>")


@EVERY_DIALECT
def test_an_error_inside_a_stream_may_be_told_by_its_cause(dialect: str) -> None:
    actions = ask(script(step(text("one"), error_event("", cause="overloaded"))), dialect)
    assert form_of("overloaded", dialect, "openai").message.encode() in b"".join(sends(actions))


@pytest.mark.parametrize("dialect", [name for name in DIALECT_NAMES if name in ("openai_chat", "anthropic_messages")])
def test_usage_can_come_twice(dialect: str) -> None:
    counted = [
        sum(b"4321" in event for event in sends(ask(script(step("one", usage=usage)), dialect)))
        for usage in (ONCE, {**ONCE, "times": 2})
    ]
    assert counted == [1, 2]


@EVERY_DIALECT
def test_bytes_may_trail_after_the_end(dialect: str) -> None:
    events, _ = plain(dialect)
    actions = ask(script(step("one two three", stream={**WORDS, "trailing": "late\n\n"})), dialect)
    assert sends(actions) == [*events, b"late\n\n"]


@EVERY_DIALECT
@pytest.mark.parametrize("is_stream", [pytest.param(True, id="stream"), pytest.param(False, id="whole")])
def test_an_answer_may_have_another_content_type_and_more_headers(dialect: str, is_stream: bool) -> None:
    played = script(step("hi", content_type="text/plain", headers={"x-ratelimit-remaining-requests": 3}))
    headers = dict(head_of(ask(played, dialect, is_stream=is_stream)).headers)
    assert (headers["content-type"], headers["x-ratelimit-remaining-requests"]) == ("text/plain", "3")


@EVERY_DIALECT
def test_a_whole_answer_drips(dialect: str) -> None:
    whole = sends(ask(script(step("hi")), dialect, is_stream=False))[0]
    actions = ask(script(step("hi", stream={"drip": {"bytes": 10, "every_ms": 3}})), dialect, is_stream=False)
    expected: list[Action] = []
    for at in range(0, len(whole), 10):
        expected += [Delay(3)] if at else []
        expected.append(Send(whole[at : at + 10], at + 10 >= len(whole)))
    assert (actions[1:], head_of(actions).length) == (expected, len(whole))


@pytest.mark.parametrize(
    ("dialect", "field"),
    [
        pytest.param("openai_chat", b'"index":0,"id"', id="chat"),
        pytest.param("anthropic_messages", b'"type":"content_block_start","index":0', id="messages"),
        pytest.param("openai_responses", b'"output_index":0,"item":{"id"', id="responses"),
    ],
)
def test_two_calls_can_share_one_index(dialect: str, field: bytes) -> None:
    calls = [tool_call(name, {}, id=f"call_{name}_0001", index=0) for name in ("a", "b")]
    openings = [event for event in sends(ask(script(step(*calls)), dialect)) if field in event]
    found = [name for event in openings for name in (b"call_a_0001", b"call_b_0001") if name in event]
    assert list(dict.fromkeys(found)) == [b"call_a_0001", b"call_b_0001"]


@pytest.mark.parametrize("kind", ["truncate", "bad_utf8", "end"])
def test_a_whole_answer_can_be_spoilt(kind: str) -> None:
    whole = sends(ask(script(step("hi")), "openai_chat", is_stream=False))[0]
    half, middle = whole[: (len(whole) + 1) // 2], len(whole) // 2
    expected = {"truncate": half, "bad_utf8": whole[:middle] + b"\xff\xfe" + whole[middle:], "end": half}[kind]
    actions = ask(script(step("hi", fault={"kind": kind, "after": 1})), "openai_chat", is_stream=False)
    assert b"".join(sends(actions)) == expected


@pytest.mark.parametrize("kind", [kind for kind in DEADLY_KINDS if kind != "refuse"] + list(HARM_KINDS))
def test_a_fault_may_stand_among_the_parts(kind: str) -> None:
    parts: list[Json] = [text("one "), fault(kind), text("two "), text("three")]
    events, at = plain("openai_chat")
    actions = ask(script(step(reply=parts)), "openai_chat")
    by_step = struck("openai_chat", kind)
    assert (actions[: at + 5], events[:at]) == (by_step[: at + 5], sends(actions)[:at])


@EVERY_DIALECT
@pytest.mark.parametrize("status", [500, 200])
def test_an_answer_may_have_an_empty_body(dialect: str, status: int) -> None:
    actions = ask(script(step(http_error={"status": status, "body": ""})), dialect)
    assert (head_of(actions).status, head_of(actions).length, b"".join(sends(actions))) == (status, 0, b"")
