"""A recording becomes files that say again what was said: all of them or none."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import mock_provider
from mock_provider.copying import Source
from mock_provider.errors import RecordingError, UsageError
from mock_provider.json_values import Json, JsonObject
from mock_provider.recording.cassette import MAX_INTERACTIONS, Facts, compose_cassettes
from mock_provider.recording.cleaning import Cleaner
from mock_provider.recording.exchanges import Clean, Seen
from mock_provider.recording.forwarding import Forwarder
from mock_provider.recording.scripting import escaped
from mock_provider.recording.storing import Recording, check_folder, compose_recording, store
from mock_provider.replies import (
    conversation,
    error_event,
    fault,
    http_error,
    reasoning,
    script,
    step,
    text,
    tool_call,
)
from mock_provider.script import parse_script

if TYPE_CHECKING:
    from mock_provider.script import ScriptLike

FACTS = Facts("127.0.0.1", None)
UPSTREAM = "http://127.0.0.1:1"
KEY = {"authorization": "Bearer sk-test-0001", "content-type": "application/json"}


class Client:
    """Sends requests through a forwarder whose provider is a script."""

    def __init__(self, played: ScriptLike) -> None:
        self.forwarder = Forwarder(UPSTREAM, now_ms=lambda: 7, transport=mock_provider.transport(played))

    async def send(self, path: str, body: Json, **headers: str) -> str:
        """One request, its answer read to the end, or to where it breaks off."""
        given_headers = {**KEY, **headers}
        begun = await self.forwarder.send("POST", path, given_headers, json.dumps(body).encode())
        return await _read(begun.pieces)

    async def chat(self, *messages: JsonObject | str, **more: Json) -> JsonObject:
        """One chat request."""
        listed: list[Json] = [one if isinstance(one, dict) else user(one) for one in messages]
        answer = await self.send("/v1/chat/completions", {"model": "m", "messages": listed, **more})
        return {} if more.get("stream") else dict(json.loads(answer))

    def recording(self, *, keeps_transient: bool = False) -> Recording:
        return compose_recording(self.forwarder.seen, FACTS, UPSTREAM, keeps_transient=keeps_transient)


async def _read(pieces: AsyncIterator[bytes]) -> str:
    found = b""
    try:
        async for piece in pieces:
            found += piece
    except httpx.HTTPError:
        pass
    return found.decode("utf-8")


def user(words: str) -> JsonObject:
    return {"role": "user", "content": words}


def message_of(answer: JsonObject) -> JsonObject:
    """The message of a chat answer, as a client sends it back."""
    choices = answer["choices"]
    assert isinstance(choices, list)
    choice = choices[0]
    assert isinstance(choice, dict)
    message = choice["message"]
    assert isinstance(message, dict)
    return {key: value for key, value in message.items() if key in ("role", "content", "tool_calls")}


def script_of(recording: Recording) -> JsonObject:
    """The script of a recording, as data; it has to be one."""
    written = recording.files["script.yaml"]
    parse_script(written, "script.yaml")
    loaded: JsonObject = yaml.safe_load(written)
    return loaded


def steps_of(recording: Recording) -> list[dict[str, Any]]:  # Any: each kind of step has a form of its own
    """The steps of the script of a recording."""
    found: list[dict[str, Any]] = yaml.safe_load(recording.files["script.yaml"])["steps"]
    script_of(recording)
    return found


async def test_a_round_with_a_tool_is_said_again_by_its_script() -> None:
    client = Client(
        script(
            step(
                reasoning("hm"),
                text("I look."),
                tool_call("read", {"path": "a {{{{b}}}}"}, id="call_0001"),
                usage={"input": 4, "output": 10, "reasoning": 1},
            ),
            step(text("It is done."), usage={"input": 50, "cached": 32, "output": 7}),
        )
    )
    answer = message_of(await client.chat("look at README"))
    result: JsonObject = {"role": "tool", "tool_call_id": "call_0001", "content": "x"}
    await client.chat("look at README", answer, result)
    recording = client.recording()
    assert (recording.problems, recording.lines) == ((), ("2 answers recorded",))
    assert script_of(recording) == {
        "version": 1,
        "name": "recording",
        "steps": [
            {
                "expect": {"last_user": "look at README", "messages": 1},
                "reply": [
                    {"reasoning": "hm"},
                    {"text": "I look."},
                    {"tool_call": {"name": "read", "arguments": {"path": "a {{{{b}}}}"}, "id": "call_0001"}},
                ],
                "usage": {"input": 4, "output": 10, "reasoning": 1},
            },
            {
                "expect": {"last_user": "look at README", "messages": 3},
                "reply": [{"text": "It is done."}],
                "usage": {"input": 50, "output": 7, "cached": 32},
            },
        ],
    }


async def test_conversations_side_by_side_become_conversations_and_cassettes_of_their_own() -> None:
    played = script(
        conversations={
            name: conversation(step(f"{name} one"), step(f"{name} two"), when={"user_contains": name})
            for name in ("red", "blue")
        }
    )
    client = Client(played)
    red = message_of(await client.chat("the red one"))
    blue = message_of(await client.chat("the blue one"))
    await client.chat("the blue one", blue, "go on")
    await client.chat("the red one", red, "go on")
    recording = client.recording()
    conversations = script_of(recording)["conversations"]
    assert isinstance(conversations, dict)
    assert [one["when"] for one in conversations.values() if isinstance(one, dict)] == [
        {"user_contains": "the red one"},
        {"user_contains": "the blue one"},
    ]
    assert sorted(recording.files) == ["cassette-c1.yaml", "cassette-c2.yaml", "script.yaml"]
    bodies = [entry["response"]["body"]["string"] for entry in _interactions(recording, "cassette-c2.yaml")]
    assert [word in body for word, body in zip(("blue one", "blue two"), bodies, strict=True)] == [True, True]


def _interactions(recording: Recording, name: str) -> Sequence[dict[str, dict[str, dict[str, str]]]]:
    found: Sequence[dict[str, dict[str, dict[str, str]]]] = yaml.safe_load(recording.files[name])["interactions"]
    return found


async def test_conversations_that_begin_alike_are_said_in_the_order_they_came() -> None:
    client = Client(script(step("one"), step("two")))
    await client.chat("the same")
    await client.chat("the same")
    recording = client.recording()
    assert recording.problems == ()
    steps = steps_of(recording)
    assert [one["reply"] for one in steps] == [[{"text": "one"}], [{"text": "two"}]]


@pytest.mark.parametrize("keeps", [pytest.param(False, id="left-out"), pytest.param(True, id="kept")])
async def test_errors_that_pass_are_kept_only_on_request(keeps: bool) -> None:
    client = Client(script(http_error(429, retry_after=3), step("hi"), http_error(400, message="never")))
    for _ in range(3):
        await client.chat("x")
    recording = client.recording(keeps_transient=keeps)
    steps = steps_of(recording)
    statuses = [one["http_error"]["status"] for one in steps if "http_error" in one]
    assert statuses == ([429, 400] if keeps else [400])
    left_out = "1 answer left out: may pass at another time (--keep-transient keeps it)"
    assert (left_out in recording.lines) is not keeps
    if keeps:
        assert steps[0]["http_error"]["headers"] == {"retry-after": "3"}


async def test_an_answer_that_broke_off_is_left_out() -> None:
    client = Client(script(step(text("one"), fault("cut")), step("hi")))
    await client.chat("x", stream=True)
    await client.chat("x")
    recording = client.recording()
    assert recording.lines == ("1 answer recorded", "1 answer left out: did not come to an end")


async def test_a_stream_is_kept_with_its_offsets_and_cut_again() -> None:
    client = Client(script(step("one two three four", stream={"split": "words"})))
    await client.chat("x", stream=True, stream_options={"include_usage": True})
    recording = client.recording()
    interaction = yaml.safe_load(recording.files["cassette.yaml"])["interactions"][0]
    pieces, body = interaction["response"]["pieces"], interaction["response"]["body"]["string"]
    assert (len(pieces), sum(size for _, size in pieces)) == (8, len(body.encode()))
    steps = steps_of(recording)
    assert steps[0]["stream"] == {"split": {"chars": 4}}


async def test_an_error_inside_a_stream_is_said_again() -> None:
    client = Client(script(step(text("one"), error_event("all is lost", code="c"))))
    await client.chat("x", stream=True)
    recording = client.recording()
    steps = steps_of(recording)
    assert steps[0]["reply"] == [
        {"text": "one"},
        {"error_event": {"message": "all is lost", "type": "server_error", "code": "c"}},
    ]
    assert recording.problems == ()


async def test_responses_that_continue_one_another_by_id_are_one_conversation() -> None:
    client = Client(script(step(reasoning("hm"), text("one")), step("two")))
    first = json.loads(await client.send("/v1/responses", {"model": "m", "input": "x"}))
    await client.send("/v1/responses", {"model": "m", "input": "go on", "previous_response_id": first["id"]})
    recording = client.recording()
    assert (recording.problems, len(steps_of(recording))) == ((), 2)


async def test_answers_that_need_no_step_are_in_the_cassette_alone() -> None:
    client = Client(script(step("hi")))
    await client.send("/v1/embeddings", {"model": "m", "input": "x"})
    recording = client.recording()
    assert (sorted(recording.files), recording.lines) == (
        ["cassette.yaml"],
        ("1 answer recorded", "1 answer needs no step of the script", "there is no script"),
    )


async def test_what_cannot_be_said_in_parts_is_kept_as_it_is() -> None:
    body = '{"choices": [{"index": 0, "message": {}}, {"index": 1, "message": {}}], "odd": true}'
    client = Client(script(step(http_error={"status": 200, "body": body})))
    await client.chat("x", n=2)
    recording = client.recording()
    steps = steps_of(recording)
    assert steps[0]["http_error"] == {"status": 200, "body": body, "content_type": "application/json"}
    assert recording.problems == ()


async def test_a_script_that_would_not_say_the_same_is_not_written_and_the_cassette_is() -> None:
    client = Client(script(step(http_error={"status": 200, "body": '{"choices": []}'})))
    await client.send("/v1/chat/completions", {"model": "m", "messages": [{"role": "odd", "content": "x"}]})
    seen = client.forwarder.seen[0]
    seen.status = 200  # a provider that takes what the mock refuses
    recording = client.recording()
    assert (sorted(recording.files), len(recording.problems)) == (["cassette.yaml"], 1)
    assert recording.problems[0].startswith("answer 1: status 400 instead of 200: Invalid value: 'odd'.")


def exchange(number: int, *, status: int = 200, is_complete: bool = True, failure: str = "") -> Seen:
    one = Seen(number, "POST", "/v1/chat/completions", {}, b"{}", status, is_complete=is_complete, failure=failure)
    one.pieces = [(0, b"{}")] if status else []
    return one


AGAIN = "wait for the whole answer before the program ends"


@pytest.mark.parametrize(
    ("came", "what", "fix"),
    [
        pytest.param([], "no request came in", "let the program take its base URL", id="no-request"),
        pytest.param(
            [exchange(1, status=0, is_complete=False, failure="ConnectError")],
            "1 request came in, and none was answered by the provider (ConnectError)",
            "check --upstream",
            id="no-provider",
        ),
        pytest.param(
            [exchange(1, status=0, is_complete=False), exchange(2, status=0, is_complete=False)],
            "2 requests came in, and none was answered by the provider",
            "check --upstream",
            id="left-before-an-answer",
        ),
        pytest.param([exchange(1, is_complete=False)], "1 answer left out: did not come to an end", AGAIN, id="cut"),
        pytest.param(
            [exchange(1, is_complete=False), exchange(2, status=503)],
            "1 answer left out: did not come to an end; "
            "1 answer left out: may pass at another time (--keep-transient keeps it)",
            f"{AGAIN}, or add --keep-transient",
            id="transient",
        ),
    ],
)
def test_nothing_recorded_is_an_error_that_says_what_was_seen_and_how_to_mend_it(
    came: list[Seen], what: str, fix: str
) -> None:
    with pytest.raises(RecordingError) as caught:
        compose_recording(came, FACTS, UPSTREAM)
    assert str(caught.value).splitlines()[0] == f"nothing was recorded: {what} [RECORDING]"
    assert (caught.value.fix.startswith(fix), bool(caught.value.expected)) == (True, True)


def test_a_long_recording_is_more_than_one_cassette() -> None:
    one = Clean(1, "POST", "http://127.0.0.1/x", "/x", {}, "{}", 200, "OK", {}, "{}", ((0, 2),))
    texts = compose_cassettes([one] * (MAX_INTERACTIONS + 1), FACTS)
    assert [len(yaml.safe_load(written)["interactions"]) for written in texts] == [MAX_INTERACTIONS, 1]


@given(st.text("{}ab", max_size=30))
def test_a_text_as_a_template_gives_itself_back(words: str) -> None:
    assert Source({}, {}).text(escaped(words)) == words


# Storing


RECORDING = Recording({"cassette.yaml": "a", "script.yaml": "b"}, (), ())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_files_appear_together(tmp_path: Path) -> None:
    store(RECORDING, tmp_path / "deep" / "out")
    assert (names(tmp_path / "deep"), names(tmp_path / "deep" / "out")) == (["out"], ["cassette.yaml", "script.yaml"])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="the folder is not empty"):
        check_folder(tmp_path / "out", may_replace=False)
    with pytest.raises(UsageError, match="the folder is not empty"):
        store(RECORDING, tmp_path / "out")
    assert (names(tmp_path), names(tmp_path / "out")) == (["out"], ["mine.txt"])


def test_a_folder_is_replaced_on_request(tmp_path: Path) -> None:
    store(Recording({"cassette-c1.yaml": "a"}, (), ()), tmp_path / "out")
    store(RECORDING, tmp_path / "out", may_replace=True)
    assert (names(tmp_path), names(tmp_path / "out")) == (["out"], ["cassette.yaml", "script.yaml"])


def test_a_recording_that_fails_half_way_leaves_what_was_there(tmp_path: Path) -> None:
    store(Recording({"cassette-c1.yaml": "a"}, (), ()), tmp_path / "out")
    broken = Recording({"good.yaml": "a", "no/such/folder.yaml": "b"}, (), ())
    with pytest.raises(UsageError, match="the folder cannot be written"):
        store(broken, tmp_path / "out", may_replace=True)
    assert (names(tmp_path), names(tmp_path / "out")) == (["out"], ["cassette-c1.yaml"])


def test_a_folder_with_something_of_the_persons_own_is_never_replaced(tmp_path: Path) -> None:
    store(RECORDING, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    for refuse in (check_folder, partial(store, RECORDING)):
        with pytest.raises(UsageError, match=r"holds something else than a recording: notes\.txt"):
            refuse(tmp_path / "out", may_replace=True)
    assert names(tmp_path / "out") == ["cassette.yaml", "notes.txt", "script.yaml"]


def test_a_folder_behind_a_link_is_filled_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    store(RECORDING, tmp_path / "link")
    assert ((tmp_path / "link").is_symlink(), names(tmp_path), names(tmp_path / "real")) == (
        True,
        ["link", "real"],
        ["cassette.yaml", "script.yaml"],
    )


@pytest.mark.parametrize(
    ("folder", "what"),
    [
        pytest.param("/dev/null/out", "the folder cannot be written: Not a directory", id="below-a-file"),
        pytest.param("/proc/out", "the folder cannot be written: ", id="where-nothing-can-be-made"),
        pytest.param("loop", "the folder cannot be written: ", id="link-to-itself"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_recording(tmp_path: Path, folder: str, what: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match=what):
        check_folder(tmp_path / folder, may_replace=False)
    assert names(tmp_path) == ["loop"]


def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file", encoding="utf-8")
    with pytest.raises(UsageError, match="this is no folder"):
        check_folder(tmp_path / "out", may_replace=True)


def test_the_host_and_the_date_are_those_of_the_provider() -> None:
    answer = '{"id": "i"}'
    one = Clean(1, "POST", "https://api.example/x", "/x", {}, '{"model": "m"}', 200, "OK", {}, answer, ((0, 11),))
    written = compose_cassettes([one], Facts("api.example", "2026-01-02T03:04:05+00:00"))[0]
    origin = yaml.safe_load(written)["interactions"][0]["response"]["origin"]
    assert {key: origin[key] for key in ("class", "host", "recorded_at", "requested_model", "provider_id")} == {
        "class": "scripted",
        "host": "api.example",
        "recorded_at": "2026-01-02T03:04:05+00:00",
        "requested_model": "m",
        "provider_id": "i",
    }


def test_a_port_of_this_machine_is_not_kept() -> None:
    one = Seen(1, "POST", "/v1/x?a=b", {}, b"{}", 200, "OK", [], [(0, b"{}")], True)
    uris = []
    for upstream in ("http://127.0.0.1:4321", "http://[::1]:4321", "https://api.example:8443"):
        found = Cleaner().clean(one, upstream)
        assert found is not None
        uris.append(found.uri)
    assert uris == ["http://127.0.0.1/v1/x?a=b", "http://[::1]/v1/x?a=b", "https://api.example:8443/v1/x?a=b"]
