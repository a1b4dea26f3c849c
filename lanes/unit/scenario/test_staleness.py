"""Ages of recordings and what else makes them stale: by what they say of themselves, whatever their files look like."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lanes.cassette import CassetteFile, load_cassette
from lanes.errors import CassetteError
from lanes.normalize import Json
from lanes.staleness import (
    ProviderAges,
    Today,
    age_days,
    drifted_dialects,
    freshness,
    header_class,
    level,
    stale_forms,
)
from lanes.subject import commit_times
from lanes.unit.scenario.made_cassettes import made_document, write_cassette

NOW = datetime(2031, 3, 31, 12, tzinfo=UTC)
ROW = ProviderAges("acme", "models.invalid", ("m-1", "m-2"), ("m-0",))


def origin(days: float | None = 0, **facts: Json) -> dict[str, Json]:
    """What an exchange says of itself that was recorded so many days ago."""
    at = None if days is None else (NOW - timedelta(days=days)).isoformat()
    own: dict[str, Json] = {"host": "models.invalid", "requested_model": "m-1", "recorder": "lanes.recording/1"}
    return {**own, "recorded_at": at, **facts}


def judged(*origins: dict[str, Json], row: ProviderAges = ROW, **today: object) -> dict[str, Json]:
    return freshness(list(origins), [], Today(NOW, providers=(row,), **today), "a.yaml")  # type: ignore[arg-type] # fields of Today


def dated(folder: Path, days: int) -> CassetteFile:
    """A cassette whose first exchange was recorded so many days ago, the others today."""
    document = made_document()
    for at, interaction in enumerate(document["interactions"]):
        moment = NOW - timedelta(days=0 if at else days)
        interaction["response"]["origin"]["recorded_at"] = moment.isoformat()
    return load_cassette(write_cassette(folder, document))


@pytest.mark.parametrize("file_age_days", [0, 400])
def test_cassettes_55_56_the_oldest_exchange_gives_the_age_and_the_file_time_says_nothing(
    file_age_days: int, tmp_path: Path
) -> None:
    file = dated(tmp_path, 100)
    moment = (NOW - timedelta(days=file_age_days)).timestamp()
    os.utime(file.path, (moment, moment))

    facts = freshness([each.origin for each in file.interactions], file.bodies, Today(NOW), str(file.path))

    assert (facts["age_days"], facts["level"]) == (100, "stale")


def test_reading_does_not_refresh(tmp_path: Path) -> None:
    file = dated(tmp_path, 100)
    load_cassette(file.path)

    assert age_days([each.origin for each in file.interactions], NOW) == 100


@pytest.mark.parametrize(
    ("days", "expected"),
    [(None, "undated"), (0, "fresh"), (30, "fresh"), (31, "ageing"), (90, "ageing"), (91, "stale")],
)
def test_levels_begin_after_thirty_and_after_ninety_days(days: int | None, expected: str) -> None:
    assert judged(origin(days))["level"] == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(
            ProviderAges("acme", "models.invalid", fresh_days=5, stale_days=10), (5, 10, "stale"), id="tighter"
        ),
        pytest.param(
            ProviderAges("acme", "models.invalid", fresh_days=300, stale_days=900), (30, 90, "fresh"), id="looser"
        ),
    ],
)
def test_a_provider_may_tighten_the_levels_and_never_loosen_them(
    row: ProviderAges, expected: tuple[int, int, str]
) -> None:
    facts = judged(origin(20), row=row)

    assert (facts["fresh_days"], facts["stale_days"], facts["level"]) == expected


def test_a_row_of_another_host_says_nothing() -> None:
    assert judged(origin(20, host="elsewhere.invalid"), row=ProviderAges("acme", "models.invalid", stale_days=1))[
        "level"
    ] == level(20)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        pytest.param({"requested_model": "m-0"}, "model m-0 is retired", id="retired"),
        pytest.param({"requested_model": "m-9"}, "model m-9 is not configured any more", id="replaced"),
        pytest.param({"recorder": "somebody/1"}, "recorder somebody/1 is not known", id="unknown-recorder"),
        pytest.param({"recorder": None}, "recorder None is not known", id="no-recorder"),
    ],
)
def test_a_young_recording_is_stale_by_what_it_was_made_of(facts: dict[str, Json], reason: str) -> None:
    assert judged(origin(), origin(**facts))["stale_reasons"] == [reason]


def test_a_form_below_the_floor_is_stale() -> None:
    assert stale_forms([origin()], {"lanes.recording": 2}) == [
        "recorder lanes.recording/1 is older than lanes.recording/2"
    ]


def test_breaking_drift_of_its_provider_makes_a_recording_stale_with_the_finding() -> None:
    drifted = {"acme": ("stream:removed:content.id",), "other": ("whole:removed:.id",)}

    assert judged(origin(), drifted=drifted)["stale_reasons"] == ["its provider drifted: stream:removed:content.id"]


def test_drift_of_the_model_of_this_machine_concerns_its_own_recordings_alone() -> None:
    today = Today(NOW, drifted={"local": ("whole:removed:.id",)})
    live, scripted = origin(host="loopback", **{"class": "live"}), origin(host="loopback", **{"class": "scripted"})

    assert freshness([live], [], today, "a")["stale_reasons"] == ["its provider drifted: whole:removed:.id"]
    assert freshness([scripted], [], today, "a")["stale_reasons"] == []


def test_drift_from_a_dialects_catalogue_makes_what_was_answered_in_it_stale() -> None:
    today = Today(NOW, drifted_dialects={"openai_chat": ("whole:removed:.id",)})

    assert drifted_dialects({"openai_chat"}, today) == ["its provider drifted: whole:removed:.id"]
    assert drifted_dialects({"ollama"}, today) == []


def body(system: str, *tools: str) -> dict[str, Json]:
    listed: list[Json] = [{"type": "function", "function": {"name": name}} for name in tools]
    return {"messages": [{"role": "system", "content": system}], "tools": listed}


def test_a_header_that_is_no_more_the_pinned_one_makes_a_recording_stale() -> None:
    names, digest = header_class(body("Do it.", "b", "a"))
    today = Today(NOW, headers={names: digest})
    found = [
        freshness([origin(host="x")], [each], today, "a")["stale_reasons"]
        for each in (body("Do it.", "b", "a"), body("Do it well.", "b", "a"), body("Do it well.", "c"), body("Do it."))
    ]

    assert (names, found) == (("a", "b"), [[], ["the request header differs from the pinned one"], [], []])


def test_an_impossible_date_stops_the_recording_from_being_opened() -> None:
    with pytest.raises(CassetteError) as caught:
        freshness([origin()], [], Today(NOW, committed={"a.yaml": NOW - timedelta(days=3)}), "a.yaml")

    assert caught.value.error_code == "CASSETTE_AFTER_COMMIT"


def git(root: Path, *arguments: str, at: str = "2031-03-01T10:00:00+00:00") -> None:
    subprocess.run(
        ["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e@example.invalid", *arguments],
        check=True,
        capture_output=True,
        env={**os.environ, "GIT_COMMITTER_DATE": at, "GIT_AUTHOR_DATE": at},
    )


def test_a_files_commit_is_the_last_one_that_touched_it_and_none_once_it_is_changed(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "c").mkdir()
    for name, at in (("one", "2031-03-01T10:00:00+00:00"), ("two words", "2031-03-02T10:00:00+00:00")):
        (tmp_path / "c" / name).write_text(name, encoding="utf-8")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", name, at=at)
    before = commit_times(tmp_path, "c")
    (tmp_path / "c" / "one").write_text("changed", encoding="utf-8")

    assert {name: told[:10] for name, told in before.items()} == {"c/one": "2031-03-01", "c/two words": "2031-03-02"}
    assert list(commit_times(tmp_path, "c")) == ["c/two words"]
    assert commit_times(tmp_path / "c" / "nowhere", "c") == {}
