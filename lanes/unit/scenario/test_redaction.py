"""Secrets: learnt wherever they stand, removed in every form, and searched for in what is written."""

import base64
import gzip
import json
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from lanes.cassette import CassettePlayer
from lanes.errors import CassetteError
from lanes.recording import Circumstances, RecordingTransport, compose_cassette, store_cassette
from lanes.redaction import REQUEST_HEADERS, Redactor, forms_of, secrets_of

CASES = Path(__file__).parents[2] / "cases" / "recordings"
CASE = json.loads((CASES / "B36-secrets-exchange.json").read_text(encoding="utf-8"))
FACTS = Circumstances(recorded_at="2031-03-04T05:06:07Z", commit=None)


class Answering(httpx.AsyncBaseTransport):
    """A stand-in provider with one fixed answer."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self._answer = (status, headers, body)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        status, headers, body = self._answer
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


async def _record(answer: httpx.AsyncBaseTransport, redactor: Redactor, **request: object) -> str:
    transport = RecordingTransport(answer, now_ms=lambda: 0)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.request(**request)
    return compose_cassette(transport.exchanges, redactor, FACTS)


def _case_request(key: str = "") -> dict[str, object]:
    asked = CASE["request"]
    headers = [(name, value + key) for name, value in asked["headers"]]
    body = json.dumps(asked["body"]).replace("canary-body-4e77", f"canary-body-4e77{key}")
    url = asked["url"].replace("PORT", "8000")
    return {"method": asked["method"], "url": url, "headers": headers, "content": body}


def _case_answer() -> Answering:
    said = CASE["response"]
    return Answering(said["status"], [tuple(pair) for pair in said["headers"]], json.dumps(said["body"]).encode())


async def test_case_B36_no_canary_is_in_the_recording_in_any_form() -> None:
    text = await _record(_case_answer(), Redactor(), **_case_request())

    hits = [
        (canary, form)
        for canary in CASE["canaries"]
        for form in (canary, base64.b64encode(canary.encode()).decode().rstrip("="), quote(canary, safe=""))
        if form in text
    ]
    assert hits == []
    assert '"content":"hello"' in text.replace(" ", "").replace('\\"', '"')


async def test_case_B36_the_redacted_recording_still_matches_with_another_key(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    store_cassette(path, await _record(_case_answer(), Redactor(), **_case_request()))

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        answer = await client.request(**_case_request("-rotated"))

    assert (answer.status_code, answer.json()["choices"][0]["message"]["content"]) == (200, "hi")
    assert player.verify() == ()


async def test_case_B36_the_message_of_a_miss_holds_no_canary(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    store_cassette(path, await _record(_case_answer(), Redactor(), **_case_request()))
    changed = _case_request()
    changed["content"] = str(changed["content"]).replace("hello", "good bye")

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        answer = await client.request(**changed)

    said = answer.text + "\n".join(player.verify())
    assert "good bye" in said
    assert [canary for canary in CASE["canaries"] if canary in said] == []


@pytest.mark.parametrize("spelling", ["X-Company-Token", "x-company-token", "X_COMPANY_TOKEN"])
def test_case_B36_a_header_added_to_the_list_is_covered_in_any_letter_case(spelling: str) -> None:
    redactor = Redactor(names=frozenset({"X-Company-Token"}))
    kept = redactor.headers([(spelling, "canary-company-77"), ("accept", "a")], REQUEST_HEADERS)

    assert kept == {"accept": ["a"]}
    assert redactor.text("it was canary-company-77") == "it was redacted"


async def test_a_key_that_the_answer_echoes_is_removed_there_too() -> None:
    key = "canary-echo-5512"
    body = json.dumps({"error": f"key {key} is fine", "twice": base64.b64encode(f"x{key}y".encode()).decode()})
    text = await _record(
        Answering(200, [("content-type", "application/json")], body.encode()),
        Redactor(),
        method="POST",
        url="https://models.invalid/v1/chat/completions",
        headers={"authorization": f"Bearer {key}"},
        json={"model": "m"},
    )

    assert key not in text
    assert base64.b64encode(key.encode()).decode()[:12] not in text


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_a_secret_inside_base64_is_found_at_each_position(shift: int) -> None:
    redactor = Redactor(values={"canary-value-31"})
    packed = base64.b64encode(b"#" * shift + b"canary-value-31" + b"#" * 4).decode()

    assert any("base64" in kind for kind in redactor.findings(f"blob: {packed}"))
    assert redactor.findings(f"blob: {redactor.text(packed)}") == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("sk-" + "proj-" + "a1" * 14, "an API key", id="project-key"),
        pytest.param("sk-" + "ant-" + "api03-" + "b2" * 14, "an API key", id="second-vendor"),
        pytest.param("gh" + "p_" + "c3" * 18, "a forge token", id="forge"),
        pytest.param("Authorization: Bearer " + "d4" * 10, "a bearer token", id="bearer"),
    ],
)
def test_a_finding_names_the_kind_and_never_the_value(text: str, kind: str) -> None:
    found = Redactor().findings(f"x: {text}")

    assert found == [kind]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("he sent Bearer abcdef0123456789, and", id="digit"),
        pytest.param("he sent Bearer abcDEfgHIjklMNOpq, and", id="capitals"),
        pytest.param("Authorization: Bearer instruments", id="field"),
        pytest.param("AUTHORIZATION:bearer instruments", id="field-in-capitals"),
        pytest.param("{'Authorization': 'Bearer instruments'}", id="field-of-a-dictionary"),
    ],
)
def test_what_looks_like_a_bearer_token_or_stands_in_its_field_is_removed_and_found(text: str) -> None:
    redactor = Redactor()

    assert (redactor.findings(text), redactor.findings(redactor.text(text))) == (["a bearer token"], [])
    assert "redacted" in redactor.text(text)


@pytest.mark.parametrize(
    "words",
    [
        "trade in bearer instruments",
        "Bearer token required",
        "Bearer authentication, not basic authentication",
        "the class Bearer AuthenticationMiddleware",
        "Authorization: Bearer redacted",
    ],
)
def test_words_after_the_name_of_a_scheme_are_no_token(words: str) -> None:
    assert (Redactor().text(words), Redactor().findings(words)) == (words, [])


def test_ordinary_words_are_no_finding() -> None:
    text = '{"max_tokens": 100, "usage": {"prompt_tokens": 3}, "key": "value", "task": "sk-mock-main"}'

    assert (Redactor().findings(text), Redactor().json(json.loads(text))) == ([], json.loads(text))


async def test_an_answer_that_is_not_text_is_refused_and_nothing_is_written() -> None:
    packed = gzip.compress(b'{"secret": "canary-gzip-1"}')
    with pytest.raises(CassetteError, match="answer 1 is not text"):
        await _record(Answering(200, [], packed), Redactor(), method="GET", url="https://models.invalid/v1/models")


def test_the_environment_gives_the_values_of_key_like_names_only() -> None:
    found = secrets_of({"DEEPSEEK_API_KEY": "canary-1234", "MY_TOKEN": "canary-5678", "PATH": "/usr/bin", "KEY": "x"})

    assert found == {"canary-1234", "canary-5678"}


def test_each_form_of_a_secret_is_searched() -> None:
    assert set(forms_of('a"b c/d+e')) == {
        "as it is",
        "percent-encoded",
        "JSON-escaped",
        "base64 at position 0",
        "URL-safe base64 at position 0",
        "base64 at position 1",
        "URL-safe base64 at position 1",
        "base64 at position 2",
        "URL-safe base64 at position 2",
    }
