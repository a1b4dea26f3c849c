"""No secret of a recorded exchange reaches a file, in any form; what is no secret stays."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from mock_provider.errors import RecordingError
from mock_provider.json_values import JsonObject
from mock_provider.recording.cassette import Facts
from mock_provider.recording.cleaning import Cleaner, forms_of
from mock_provider.recording.exchanges import Seen
from mock_provider.recording.forwarding import Forwarder
from mock_provider.recording.storing import Recording, compose_recording

CASE: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "cases" / "mock" / "B36-secrets-exchange.json").read_text(encoding="utf-8")
)
FACTS = Facts("127.0.0.1", None)
UPSTREAM = "http://127.0.0.1:1"


def forms(canary: str) -> set[str]:
    raw = canary.encode()
    encoded = base64.b64encode(raw).decode()
    return {canary, encoded, encoded.rstrip("="), base64.urlsafe_b64encode(raw).decode(), quote(canary, safe="")}


def answer_of_case(request: httpx.Request) -> httpx.Response:
    del request
    told = CASE["response"]
    body = httpx.ByteStream(json.dumps(told["body"]).encode())
    return httpx.Response(told["status"], headers=told["headers"], stream=body)


async def record_case(*, packed: bool = False, **changed: str) -> Recording:
    """Record the exchange of the case, with other values for some of its headers."""
    request = CASE["request"]
    headers = {name.lower(): changed.get(name.lower(), value) for name, value in request["headers"]}
    body = json.dumps(request["body"]).encode()
    if packed:
        body, headers["content-encoding"] = gzip.compress(body), "gzip"
    forwarder = Forwarder(UPSTREAM, now_ms=lambda: 0, transport=httpx.MockTransport(answer_of_case))
    begun = await forwarder.send("POST", request["url"].partition("PORT")[2], headers, body)
    assert [piece async for piece in begun.pieces] != []
    return compose_recording(forwarder.seen, FACTS, forwarder.upstream)


@pytest.mark.parametrize("packed", [pytest.param(False, id="plain"), pytest.param(True, id="gzip")])
async def test_case_B36_no_canary_is_in_any_file_of_a_recording(packed: bool) -> None:
    recording = await record_case(packed=packed)
    written = "".join(recording.files.values()) + str(recording.lines) + str(recording.problems)
    assert [canary for canary in CASE["canaries"] for form in forms(canary) if form in written] == []
    assert sorted(recording.files) == ["cassette.yaml", "script.yaml"]


async def test_case_B36_what_is_no_secret_is_kept() -> None:
    written = (await record_case()).files["cassette.yaml"]
    assert "key=redacted&mode=x" in written
    assert '"content":"hello"' in written
    assert "canary" not in written


def seen(body: object, answer: str = "{}", headers: dict[str, str] | None = None) -> Seen:
    return Seen(
        1,
        "POST",
        "/v1/chat/completions",
        headers or {},
        json.dumps(body).encode(),
        200,
        "OK",
        [("content-type", "application/json")],
        [(3, answer.encode())],
        True,
    )


def cleaned(one: Seen, *names: str) -> tuple[str, str]:
    cleaner = Cleaner(names)
    cleaner.learn(one)
    found = cleaner.clean(one, UPSTREAM)
    assert found is not None
    return found.body, found.answer


@pytest.mark.parametrize("spelling", ["x-company-token", "X-Company-Token", "X_COMPANY_TOKEN"])
def test_case_B36_a_name_added_to_the_list_is_covered_in_any_letter_case(spelling: str) -> None:
    one = seen(
        {"note": "canary-company-01", "X-Company-Token": "canary-body-02"},
        '{"x_company_token": "canary-answer-03", "said": "canary-company-01 canary-body-02"}',
        {"x-company-token": "canary-company-01"},
    )
    assert "canary" not in "".join(cleaned(one, spelling))


def test_a_secret_of_one_exchange_is_hidden_in_all_of_them() -> None:
    cleaner = Cleaner()
    first, second = seen({"api_key": "canary-key-0001"}), seen({"note": "it was canary-key-0001"})
    cleaner.learn(first)
    cleaner.learn(second)
    found = cleaner.clean(second, UPSTREAM)
    assert found is not None
    assert found.body == '{"note":"it was redacted"}'


def test_a_secret_in_an_answers_stream_is_hidden_event_by_event() -> None:
    answer = 'data: {"access_token": "canary-0001"}\n\ndata: {"said": "canary-0001!"}\n\ndata: [DONE]\n\n'
    assert cleaned(seen({}, answer))[1] == (
        'data: {"access_token":"redacted"}\n\ndata: {"said":"redacted!"}\n\ndata: [DONE]\n\n'
    )


def test_the_pieces_of_a_cleaned_answer_are_its_events() -> None:
    answer = 'data: {"access_token": "canary-0001"}\n\ndata: [DONE]\n\n'
    cleaner, one = Cleaner(), seen({}, answer)
    cleaner.learn(one)
    found = cleaner.clean(one, UPSTREAM)
    assert found is not None
    assert (found.pieces, sum(size for _, size in found.pieces)) == (((3, 35), (3, 14)), len(found.answer))


def test_an_answer_without_secrets_keeps_its_spelling_and_its_pieces() -> None:
    answer = '{"a" : 1,\n "ü": "\\u00fc"}'
    one = seen({}, answer)
    one.pieces = [(1, answer.encode()[:9]), (7, answer.encode()[9:])]
    cleaner = Cleaner()
    cleaner.learn(one)
    found = cleaner.clean(one, UPSTREAM)
    assert found is not None
    assert (found.answer, found.pieces) == (answer, ((1, 9), (7, len(answer.encode()) - 9)))


def test_the_tokens_of_probabilities_are_no_secrets() -> None:
    content: JsonObject = {"content": [{"token": "Hello world", "logprob": -0.1, "bytes": None}]}
    answer = json.dumps({"choices": [{"logprobs": content, "message": {"content": "Hello world"}}]})
    assert cleaned(seen({}, answer))[1] == answer


def test_signatures_of_thinking_stay_in_answers() -> None:
    answer = '{"content": [{"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIARgC"}]}'
    assert cleaned(seen({}, answer))[1] == answer


def test_something_spelled_like_a_key_is_hidden_wherever_it_stands() -> None:
    written = cleaned(seen({"note": "sk-proj-abcdefgh0123"}, "key sk-proj-abcdefgh0123"))
    assert "sk-proj-abcdefgh" not in "".join(written)


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_secret_inside_a_longer_base64_text_is_found(shift: int) -> None:
    secret = "canary-secret-0001"
    text = base64.b64encode(b"x" * shift + secret.encode() + b"yz").decode()
    assert any(form in text for _, form in forms_of(secret))


def test_a_file_with_a_secret_left_is_refused_by_kind_and_not_by_value() -> None:
    cleaner = Cleaner()
    cleaner.learn(seen({"api_key": "canary/key+0001"}))
    findings = [
        cleaner.findings("x canary/key+0001"),
        cleaner.findings(quote("canary/key+0001", safe="")),
        cleaner.findings(base64.b64encode(b"ab" + b"canary/key+0001").decode()),
        cleaner.findings("clean"),
    ]
    assert findings == [
        ["a hidden value, as it is"],
        ["a hidden value, percent-encoded"],
        ["a hidden value, base64 at place 2"],
        [],
    ]


def test_a_secret_that_cannot_be_removed_refuses_the_whole_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cleaner, "text", lambda self, text: text)
    one = seen({"api_key": "canary-key-0001", "note": "canary-key-0001"})
    with pytest.raises(RecordingError) as caught:
        compose_recording([one], FACTS, UPSTREAM)
    assert str(caught.value) == (
        "a secret is still in cassette.yaml: a hidden value, as it is [RECORDING_SECRET]\n"
        "  expected: no secret in any form\n"
        "  fix: name the header or field: --secret NAME; nothing was written"
    )


def test_an_answer_that_is_no_text_is_not_kept() -> None:
    one = seen({})
    one.pieces = [(0, b"\xff\x00")]
    with pytest.raises(RecordingError, match="nothing was recorded: 1 answer left out: is no text"):
        compose_recording([one], FACTS, UPSTREAM)
