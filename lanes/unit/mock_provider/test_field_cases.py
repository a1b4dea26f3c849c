"""The field cases of kind `mock`: what is not scripted is refused, order is kept, secrets are not."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from mock_provider import transport
from mock_provider.errors import VerdictError
from mock_provider.json_values import JsonObject
from mock_provider.mock import Mock
from mock_provider.replies import conversation, script, step
from mock_provider.request_log import RequestLog
from mock_provider.script import ScriptLike, build_script
from mock_provider.server import ServerThread

if TYPE_CHECKING:
    from lanes.unit.mock_provider.conftest import Play

Start = Callable[[ScriptLike], "Play"]
CASES = Path(__file__).parents[2] / "cases" / "mock"


def case(name: str) -> dict[str, Any]:  # Any: a case file is data of many forms
    content: dict[str, Any] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return content


UNMATCHED = case("B34-unmatched.json")
SEQUENCES = case("B35-sequences.json")
SECRETS = case("B36-secrets-exchange.json")


def steps_of(content: dict[str, Any]) -> list[JsonObject]:
    """The case's steps in our words."""
    return [
        step(
            one["reply"]["text"],
            expect={"last_user": {"equals": one["match"]["last_user_text"]}}
            if "last_user_text" in one["match"]
            else None,
        )
        for one in content["script"]["steps"]
    ]


@pytest.mark.parametrize("run_of_case", UNMATCHED["runs"], ids=[run["name"] for run in UNMATCHED["runs"]])
def test_case_B34_what_is_not_scripted_is_refused_and_fails_the_run(play: Start, run_of_case: dict[str, Any]) -> None:
    run = play(build_script(script(*steps_of(UNMATCHED)), "one-step"))
    answers = []
    for sent in run_of_case["client_sends"]:
        for _ in range(1 + (3 if "retries" in run_of_case.get("client", "") else 0)):
            if sent.startswith("POST "):
                answer = run.client.post(f"http://mock.invalid{sent.removeprefix('POST ')}", json={})
            else:
                answer = run.ask(sent, headers={"authorization": "Bearer canary-auth-7f3a"})
            if answer.status_code != 429 and answer.status_code < 500:
                break
        answers.append(answer)
    expected = run_of_case["expected"]
    assert run.mock.verify().ok is (expected["run_verdict"] == "passed")
    assert "canary-auth-7f3a" not in "".join(answer.text for answer in answers) + str(run.mock.verify())
    if "requests_seen" in expected:
        assert len(run.mock.journal) == expected["requests_seen"]
    if run_of_case["name"] == "extra request":
        assert 400 <= answers[1].status_code < 500
        assert answers[1].status_code not in {408, 409, 425, 429}
        assert answers[1].json()["error"]["message"].splitlines()[:2] == [
            "one-step: request 2 arrived, 1 step is scripted [SCRIPT_EXHAUSTED]",
            '  last user text: "good bye"        nearest step: 1, differs in last_user',
        ]
    if run_of_case["name"] == "wrong path":
        assert (answers[0].status_code, "POST /v1/does-not-exist" in answers[0].text) == (404, True)
    if run_of_case["name"] == "step never used":
        assert "left over 1" in str(run.mock.verify())
    if run_of_case["name"] == "control":
        assert answers[0].json()["choices"][0]["message"]["content"] == "hi"


def test_case_B34_a_secret_in_the_text_of_an_unmatched_request_is_not_echoed(play: Start) -> None:
    run = play(script(*steps_of(UNMATCHED)))
    answer = run.ask(
        "my key is sk-proj-abcdef0123456789 and canary-auth-7f3a", headers={"authorization": "Bearer canary-auth-7f3a"}
    )
    assert "[redacted] and [redacted]" in answer.json()["error"]["message"]
    assert "abcdef0123456789" not in answer.text + str(run.mock.verify()) + json.dumps(run.mock.journal[0].to_json())


def two_conversations() -> JsonObject:
    return script(conversations={name: conversation(*steps_of(SEQUENCES)) for name in ("A", "B")})


@pytest.mark.parametrize(
    "run_of_case",
    [run for run in SEQUENCES["runs"] if "together" not in run["order"][0]],
    ids=[run["name"] for run in SEQUENCES["runs"] if "together" not in run["order"][0]],
)
def test_case_B35_each_conversation_keeps_its_own_order(play: Start, run_of_case: dict[str, Any]) -> None:
    run = play(two_conversations())
    replies = []
    for name in run_of_case["order"]:
        if name == "reset":
            run.mock.reset()
            replies.append("reset")
        else:
            said = run.say("the same", headers={"x-mock-conversation": name})
            replies.append("unmatched error" if said == "mock_unmatched" else said)
    assert replies == run_of_case["replies"]


def test_case_B35_a_script_read_again_between_tests_begins_again() -> None:
    mock = Mock(build_script(two_conversations(), "two-step"), may_change=True)
    face = transport(mock)
    replies = []
    with httpx.Client(transport=face, base_url=mock.base_url(), headers={"authorization": "Bearer x"}) as client:
        body = {"model": "m", "messages": [{"role": "user", "content": "the same"}]}
        for _ in range(2):
            answer = client.post("/chat/completions", json=body, headers={"x-mock-conversation": "A"})
            replies.append(answer.json()["choices"][0]["message"]["content"])
            mock.replace(build_script(two_conversations(), "two-step"))
    assert replies == ["first", "first"]


@pytest.mark.parametrize("key", ["conversations", "clients"])
def test_case_B35_two_at_the_same_moment_in_fifty_rounds(key: str) -> None:
    parallel = script(conversations={"main": conversation(*steps_of(SEQUENCES), parallel=2)})
    names = ("A", "B") if key == "conversations" else ("main@A", "main@B")
    body = {"model": "m", "messages": [{"role": "user", "content": "the same"}]}

    with (
        ServerThread(two_conversations() if key == "conversations" else parallel) as mock,
        ThreadPoolExecutor(2) as pool,
        httpx.Client(base_url=mock.base_url(), headers={"authorization": "Bearer x"}) as client,
    ):

        def ask(name: str) -> str:
            answer = client.post("/chat/completions", json=body, headers={"x-mock-conversation": name})
            return str(answer.json()["choices"][0]["message"]["content"])

        for _ in range(50):
            together = [list(pool.map(ask, names)) for _ in range(2)]
            assert together == [["first", "first"], ["second", "second"]]
            mock.reset()


def forms(canary: str) -> set[str]:
    raw = canary.encode()
    encoded = base64.b64encode(raw).decode()
    return {canary, encoded, encoded.rstrip("="), base64.urlsafe_b64encode(raw).decode(), quote(canary, safe="")}


def send_exchange(mock: Mock, client: httpx.Client, *, packed: bool) -> httpx.Response:
    request = SECRETS["request"]
    target = request["url"].partition("PORT")[2]
    headers = dict(request["headers"])
    data = json.dumps(request["body"]).encode()
    if packed:
        headers["content-encoding"] = "gzip"
        data = gzip.compress(data)
    return client.post(f"{mock.root}{target}", content=data, headers=headers)


@pytest.mark.parametrize("packed", [pytest.param(False, id="plain"), pytest.param(True, id="gzip")])
@pytest.mark.parametrize("matches", [pytest.param(True, id="matched"), pytest.param(False, id="unmatched")])
def test_case_B36_no_secret_reaches_the_journal_the_error_or_the_verdict(
    tmp_path: Path, packed: bool, matches: bool
) -> None:
    words = "hello" if matches else "canary-body-4e77 canary-user:canary-pass-51c2"
    played = script(step("hi", expect={"last_user": words, "headers": {"x-api-key": "canary-xkey-2b9e"}}))
    path = tmp_path / "journal.jsonl"
    lines: list[str] = []
    logged = Mock(played, journal_path=path, log=RequestLog("json", lines.append))
    with ServerThread(logged) as mock, httpx.Client() as client:
        answer = send_exchange(mock, client, packed=packed)
        shown = client.get(f"{mock.root}/__mock__/journal").text + client.get(f"{mock.root}/__mock__/metrics").text
        with pytest.raises(VerdictError) as failed:
            mock.check_request(last_user="never", headers={"x-api-key": "no"})
        told = answer.text + str(mock.verify()) + mock.journal.text() + "".join(lines) + str(failed.value)
    assert answer.status_code == (200 if matches else 400)
    kept = path.read_text(encoding="utf-8")
    script_words = words  # the script's own text is not the request's secret
    searched = (kept + shown + told).replace(json.dumps(script_words)[1:-1], "")
    assert [canary for canary in SECRETS["canaries"] for form in forms(canary) if form in searched] == []
    entry = json.loads(kept.splitlines()[0])
    assert entry["path"] == "/v1/chat/completions?key=[redacted]&mode=x"
    assert entry["body"]["metadata"] == {"nested": {"token": "[redacted]"}}
    assert entry["body"]["messages"] == [{"role": "user", "content": "hello"}]
