"""Cassettes that read and still may not be played: each fault has an error of its own that says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lanes.cassette import CassettePlayer, load_cassette
from lanes.cassette_checks import check_dates
from lanes.errors import CassetteError
from lanes.playing import Target
from lanes.recorder import record_cassette
from lanes.recording import Circumstances
from lanes.recording_lock import held_for_recording
from lanes.scenario import find_scenario
from lanes.unit.scenario.made_cassettes import Document, made_document, write_cassette

NOW = datetime(2031, 3, 4, 12, tzinfo=UTC)


def changed(folder: Path, change: Callable[[Document], object]) -> Path:
    """A cassette with one thing changed."""
    document = made_document()
    change(document)
    return write_cassette(folder, document, "changed.yaml")


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def response(document: Document, at: int = 0) -> Document:
    found: Document = document["interactions"][at]["response"]
    return found


def repeat_id(document: Document) -> None:
    response(document, 2)["origin"]["provider_id"] = response(document, 0)["origin"]["provider_id"]


def ask_for_another_model(document: Document) -> None:
    request = document["interactions"][1]["request"]
    request["body"] = json.dumps({**json.loads(request["body"]), "model": "m-large"})


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        pytest.param(lambda d: d.update(extra=1), "CASSETTE_FIELD", "changed.yaml", id="unknown-field"),
        pytest.param(
            lambda d: response(d, 1)["origin"].pop("seal"), "CASSETTE_FIELD", "interaction 2", id="missing-field"
        ),
        pytest.param(repeat_id, "CASSETTE_DUPLICATE_ID", "interaction 3", id="duplicate-id"),
        pytest.param(ask_for_another_model, "CASSETTE_OTHER_MODEL", "interaction 2", id="another-model"),
        pytest.param(
            lambda d: response(d, 1)["status"].update(code=429), "CASSETTE_TRANSIENT", "interaction 2", id="too-many"
        ),
        pytest.param(
            lambda d: response(d, 4)["status"].update(code=503), "CASSETTE_TRANSIENT", "interaction 5", id="overloaded"
        ),
        pytest.param(
            lambda d: response(d)["status"].update(code="200"), "CASSETTE_DAMAGED", "interaction 1", id="no-status"
        ),
        pytest.param(
            lambda d: response(d)["body"].update(string="x"), "CASSETTE_DAMAGED", "interaction 1", id="other-length"
        ),
    ],
)
def test_each_way_to_be_bad_has_a_name_and_says_where(
    change: Callable[[Document], object], code: str, place: str, tmp_path: Path
) -> None:
    path = changed(tmp_path, change)

    with pytest.raises(CassetteError) as caught:
        load_cassette(path)

    assert (caught.value.error_code, place in caught.value.where) == (code, True)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"version: [", b"a: b: c"], ids=["bytes", "cut", "no-yaml"])
def test_what_cannot_be_decoded_is_never_an_absent_one(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.yaml"
    path.write_bytes(data)

    with pytest.raises(CassetteError) as caught:
        CassettePlayer(path)

    assert caught.value.error_code == "CASSETTE_UNDECODABLE"


def test_errors_that_pass_may_stand_where_the_claim_is_about_them(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda d: response(d, 1)["status"].update(code=429))

    assert load_cassette(path, keeps_transient=True).interactions[1].status == 429


@pytest.mark.parametrize(
    ("recorded", "committed", "code"),
    [
        pytest.param(NOW + timedelta(seconds=1), None, "CASSETTE_FUTURE", id="future"),
        pytest.param(NOW - timedelta(days=1), NOW - timedelta(days=2), "CASSETTE_AFTER_COMMIT", id="after-the-commit"),
    ],
)
def test_cassettes_54_a_date_that_cannot_be_true_is_an_error(
    recorded: datetime, committed: datetime | None, code: str
) -> None:
    origins = [{"recorded_at": "2031-01-01T00:00:00Z"}, {"recorded_at": recorded.isoformat()}]

    with pytest.raises(CassetteError) as caught:
        check_dates(origins, "a.yaml", now=NOW, committed=committed)

    assert (caught.value.error_code, caught.value.where) == (code, "a.yaml, interaction 2")


def test_what_was_recorded_before_its_commit_is_no_error() -> None:
    check_dates([{"recorded_at": "2031-01-01T00:00:00Z"}], "a.yaml", now=NOW, committed=NOW - timedelta(days=9))


@pytest.mark.parametrize("told", ["yesterday", "2031-01-01", 5], ids=["word", "no-zone", "number"])
def test_a_date_that_is_none_is_named(told: object) -> None:
    with pytest.raises(CassetteError) as caught:
        check_dates([{"recorded_at": told}], "a.yaml", now=NOW, committed=None)  # type: ignore[dict-item] # none on purpose

    assert caught.value.error_code == "CASSETTE_FIELD"


async def test_two_recorders_on_one_file_the_second_is_told_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "fix-test.yaml"
    path.write_text("old", encoding="utf-8")
    nobody = Target("http://127.0.0.1:1/v1", "openai", "m-small", None)
    with held_for_recording(path), pytest.raises(CassetteError) as caught:
        await record_cassette(find_scenario("fix-test"), nobody, {}, path, Circumstances(None, None))

    assert (caught.value.error_code, path.read_text(encoding="utf-8")) == ("CASSETTE_LOCKED", "old")
    assert names(tmp_path) == ["fix-test.yaml"]


def test_who_comes_after_a_recorder_has_ended_is_the_only_one(tmp_path: Path) -> None:
    for _ in range(2):
        with held_for_recording(tmp_path / "a.yaml"):
            assert names(tmp_path) == [".a.yaml.lock"]
    assert names(tmp_path) == []
