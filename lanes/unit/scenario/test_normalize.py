"""Normalising: what varies becomes a token, what counts stays."""

import pytest

from lanes.normalize import Identities, normalize_log, normalize_text, places_of, replace_places

PLACES = places_of({"<workspace>": ["/private/tmp/w-17", "/tmp/w-17"], "<root>": ["/tmp/w-17/top"]})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("cd /tmp/w-17", "cd <workspace>", id="end-of-text"),
        pytest.param('"/tmp/w-17/calc.py"', '"<workspace>/calc.py"', id="inside-a-path"),
        pytest.param("/tmp/w-17/top/x", "<root>/x", id="longest-first"),
        pytest.param("/private/tmp/w-17/a", "<workspace>/a", id="second-spelling"),
        pytest.param("/tmp/w-170/a", "/tmp/w-170/a", id="longer-name-is-another-place"),
        pytest.param("/tmp/w-17-old", "/tmp/w-17-old", id="dash-continues-a-name"),
        pytest.param("/mnt/tmp/w-17", "/mnt/tmp/w-17", id="tail-of-another-path"),
        pytest.param("done in /tmp/w-17.", "done in <workspace>.", id="full-stop-ends-a-sentence"),
    ],
)
def test_a_place_is_replaced_at_path_boundaries_only(text: str, expected: str) -> None:
    assert replace_places(text, PLACES) == expected


def test_uuids_are_numbered_in_first_seen_order() -> None:
    first, second = "0b2e6a9c-0000-4000-8000-000000000001", "0b2e6a9c-0000-4000-8000-000000000002"

    assert normalize_text(f"{second} {first} {second}", (), Identities()) == "<uuid-1> <uuid-2> <uuid-1>"


def _log(message: str, session: str, time: int, place: str) -> list[object]:
    return [
        {"type": "session", "id": session, "createdAt": time, "cwd": place},
        {
            "type": "user/message",
            "seq": 0,
            "time": time + 5,
            "data": {"id": message, "role": "user", "content": [{"type": "text", "text": f"look at {place}/a"}]},
        },
        {"type": "text-chunks", "seq0": 1, "time0": time + 6, "data": {"dt": [3, time % 7], "texts": ["a", "b", "c"]}},
        {"type": "llm/retry", "seq": 4, "time": time, "data": {"retryId": f"r-{time}", "delayMs": 12, "retry": 1}},
    ]


def test_two_runs_of_one_story_normalise_to_the_same_log_and_sequence_numbers_stay() -> None:
    first = normalize_log(_log("m-7", "session-7", 1700, "/tmp/w-17"), PLACES, Identities())
    second = normalize_log(
        _log("m-9", "session-9", 9900, "/tmp/x"), places_of({"<workspace>": ["/tmp/x"]}), Identities()
    )

    assert first == second
    assert [row.get("seq", row.get("seq0")) for row in first] == [None, 0, 1, 4]


def test_a_difference_that_counts_survives_normalising() -> None:
    first = normalize_log(_log("m", "s", 1, "/tmp/w-17"), PLACES, Identities())
    changed = _log("m", "s", 1, "/tmp/w-17")
    changed[3]["data"]["retry"] = 2

    assert normalize_log(changed, PLACES, Identities()) != first


def test_normalising_twice_changes_nothing() -> None:
    once = normalize_log(_log("m-7", "session-7", 1700, "/tmp/w-17"), PLACES, Identities())

    assert normalize_log(once, PLACES, Identities()) == once
