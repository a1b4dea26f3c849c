"""What was seen before: told below the table, and never a cell."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lanes.record import digest_bytes
from reports.board import LastSeen
from reports.history import HISTORY, read_earlier_answers, read_last_seen, read_used_ids

NOW = datetime(2031, 3, 7, 2, 0, tzinfo=UTC)


def history(*lines: object) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


SEEN = {
    "claim": "journey.fix-test",
    "status": "passed",
    "live": True,
    "commit": "19bd77e",
    "at": "2031-03-04T02:00:00Z",
    "model": "m",
    "host": "h",
}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param([], (), id="none"),
        pytest.param([SEEN], (LastSeen("journey.fix-test", "19bd77e", 3, "m", "h"),), id="one"),
        pytest.param(
            [
                SEEN,
                SEEN | {"commit": "later", "at": "2031-03-06T02:00:00"},
                SEEN | {"commit": "old", "at": "2031-01-01"},
            ],
            (LastSeen("journey.fix-test", "later", 1, "m", "h"),),
            id="the-latest",
        ),
        pytest.param([SEEN | {"status": "failed"}, SEEN | {"live": False}, SEEN | {"live": "yes"}], (), id="no-pass"),
        pytest.param([SEEN | {"at": "yesterday"}, [1], SEEN | {"model": None}], (), id="other-forms"),
        pytest.param(
            [SEEN | {"at": "2031-12-01"}], (LastSeen("journey.fix-test", "19bd77e", 0, "m", "h"),), id="future"
        ),
    ],
)
def test_the_latest_live_pass_is_read_from_the_history(
    tmp_path: Path, lines: list[object], expected: tuple[LastSeen, ...]
) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text(history(*lines) + "no json\n")

    assert read_last_seen(path, NOW) == expected


def test_no_history_is_no_line(tmp_path: Path) -> None:
    assert read_last_seen(tmp_path / "history.jsonl", NOW) == ()


def test_ids_of_cassettes_and_of_the_history_are_used_up(tmp_path: Path) -> None:
    digest = "sha256:" + "5" * 64
    cassettes = tmp_path / "cassettes" / "openai_chat"
    cassettes.mkdir(parents=True)
    (cassettes / "a.yaml").write_text(
        f"- origin:\n    provider_id: chatcmpl-1\n- origin: {{'provider_id': '{digest}'}}\n"
    )
    (cassettes / "b.yaml").write_text('x: {"provider_id": null}\nprovider_id_matches: true\n')
    (tmp_path / HISTORY).parent.mkdir()
    (tmp_path / HISTORY).write_text(history({"provider_ids": ["sha256:1", 7]}, {"provider_ids": None}, [1]))

    assert read_used_ids(tmp_path) == {digest_bytes(b"chatcmpl-1"), digest, "sha256:1"}


def test_what_the_history_says_of_the_judged_bundles_alone_is_no_reuse(tmp_path: Path) -> None:
    (tmp_path / HISTORY).parent.mkdir(parents=True)
    lines = [
        {**SEEN, "bundles": ["sha256:a"], "provider_ids": ["sha256:1"]},
        {**SEEN, "bundles": ["sha256:a", "sha256:b"], "provider_ids": ["sha256:2"]},
        {**SEEN, "bundles": [], "provider_ids": ["sha256:3"]},
    ]
    (tmp_path / HISTORY).write_text(history(*lines))
    assert read_used_ids(tmp_path, own=["sha256:a"]) == {"sha256:2", "sha256:3"}


def test_the_answers_of_earlier_nights_are_known_by_their_digests_and_those_of_this_one_are_not(tmp_path: Path) -> None:
    (tmp_path / HISTORY).parent.mkdir(parents=True)
    lines = [
        {**SEEN, "bundles": ["sha256:a"], "answers": ["sha256:1"]},
        {**SEEN, "bundles": ["sha256:b"], "answers": ["sha256:2", 7]},
        {**SEEN, "answers": None},
        {**SEEN, "bundles": ["sha256:c"], "answers": ["sha256:3"]},
    ]
    (tmp_path / HISTORY).write_text(history(*lines))

    assert read_earlier_answers(tmp_path, own=["sha256:a"]) == {"sha256:2", "sha256:3"}
    assert read_earlier_answers(tmp_path, 2) == {"sha256:1", "sha256:2"}


def test_without_recordings_and_history_no_id_is_used_up(tmp_path: Path) -> None:
    assert read_used_ids(tmp_path) == frozenset()
