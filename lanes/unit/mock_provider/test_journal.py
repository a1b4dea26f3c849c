"""The journal is bounded, ordered and written when asked."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import mock_provider
from mock_provider.errors import UsageError
from mock_provider.journal import Entry, Journal
from mock_provider.json_values import Json
from mock_provider.replies import script, step


def entry(number: int, body: bytes | None = b"{}") -> Entry:
    return Entry(number, "POST", "/v1/chat/completions", {}, kept_body=body)


def test_old_entries_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mock_provider.journal.MAX_ENTRIES", 2)
    journal = Journal()
    for number in (1, 2, 3):
        journal.add(entry(number))
    assert ([one.number for one in journal.entries], journal.dropped) == ([2, 3], 1)
    assert journal.text().splitlines()[0] == "(1 older requests were dropped)"


def test_old_bodies_are_dropped_before_their_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mock_provider.journal.MAX_BODY_BYTES", 25)
    journal = Journal()
    for number in (1, 2, 3):
        journal.add(entry(number, b'"0123456789"'))
    assert journal.bodies() == (None, "0123456789", "0123456789")


def test_finished_entries_are_written_one_line_each(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    for number in (1, 2):
        journal.close_entry(entry(number, b'{"a":"\\ud83d"}'))
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [(json.loads(line)["number"], json.loads(line)["body"]) for line in lines] == [
        (1, {"a": "\ud83d"}),
        (2, {"a": "\ud83d"}),
    ]
    assert oct(path.stat().st_mode & 0o777) == "0o600"


def test_a_journal_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the journal cannot be written: No such file or directory"):
        Journal(tmp_path / "none" / "journal.jsonl")


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 4 KiB: the kernel then writes what fits, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 10, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_a_journal_without_room_ends_with_a_whole_line_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    for number in (1, 2, 3):
        journal.close_entry(entry(number, b'"%b"' % (b"x" * 1500)))
    journal.close_entry(entry(4, b"{}"))
    assert [json.loads(line)["number"] for line in path.read_text(encoding="utf-8").splitlines()] == [1, 2]
    assert journal.failure == f"{path}: the journal ends before request 3: No space left on device [JOURNAL]"


def test_a_journal_goes_into_a_pipe_as_well() -> None:
    reading, writing = os.pipe()
    try:
        journal = Journal(Path(f"/dev/fd/{writing}"))
        for number in (1, 2):
            journal.close_entry(entry(number))
        lines = os.read(reading, 9999).splitlines()
    finally:
        os.close(reading)
        os.close(writing)
    assert ([json.loads(line)["number"] for line in lines], journal.failure) == ([1, 2], "")


def test_a_journal_without_room_fails_the_verdict_and_no_client() -> None:
    play = script(step("hi", repeat=2))
    face = mock_provider.transport(mock_provider.Mock(play, journal_path=Path("/dev/full")))
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    with httpx.Client(transport=face, base_url=face.mock.base_url("openai_chat")) as client:
        answers = [client.post("/chat/completions", json=body, headers={"authorization": "Bearer k"}) for _ in "ab"]
    assert [one.status_code for one in answers] == [200, 200]
    assert str(face.mock.verify()).splitlines()[1:] == [
        "  - /dev/full: the journal ends before request 1: No space left on device [JOURNAL]"
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"content": "use sk-proj-0123456789abcdef"}, id="form"),
        pytest.param({"content": "my key is hunter2hunter2"}, id="key-of-the-header"),
        pytest.param({"api_key": "correct-horse"}, id="name"),
        pytest.param({"content": "x" * 2_000 + " sk-proj-0123456789abcdef"}, id="long"),
    ],
)
def test_no_secret_is_kept_in_memory(body: dict[str, Json]) -> None:
    face = mock_provider.transport(script(step("hi", repeat="forever", optional=True)))
    headers = {"authorization": "Bearer hunter2hunter2", "x-api-key": "another-secret"}
    sent = {"model": "m", "messages": [{"role": "user", "content": "x"}], "metadata": body}
    with httpx.Client(transport=face, base_url=face.mock.root, headers=headers) as client:
        for _ in range(4):
            client.post("/v1/chat/completions", json=sent)
    for one in face.mock.journal.entries:
        kept = repr([getattr(one, name) for name in Entry.__slots__])
        words = ("sk-proj-0123", "hunter2", "correct-horse", "another-secret")
        assert [word for word in words if word in kept] == []
        assert one.kept_body is not None
    questions = face.mock._questions
    assert (questions._known, questions._seen, questions._wordings._known, questions._reader._roots) == (
        {},
        set(),
        {},
        {},
    )


def test_an_entry_reads_as_one_line() -> None:
    one = entry(3)
    one.matched, one.conversation, one.step, one.status, one.end = True, "main", 2, 200, "complete"
    assert str(one) == "#3 POST /v1/chat/completions → 200 main step 2, complete"
