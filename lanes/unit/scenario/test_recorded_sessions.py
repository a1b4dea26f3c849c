"""Recordings of several sessions, of compactions and of failed calls: what is derived, and what has to be told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from lanes.errors import CassetteError
from lanes.recorded_calls import line_of
from lanes.recorded_log import load_recorded_session
from lanes.session_log import SessionLogPlayer

LOGS = Path(__file__).parents[3] / "cassettes" / "session-logs"
URL = "http://none.invalid/v1/chat/completions"


def copied(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(LOGS / name, folder / name))


async def send(player: SessionLogPlayer, body: object) -> httpx.Response:
    async with httpx.AsyncClient(transport=player) as client:
        return await client.post(URL, json=body, headers={"authorization": "Bearer none"})


def endings(name: str) -> list[list[tuple[str, str, str]]]:
    sessions = load_recorded_session(LOGS / name).sessions
    return [[(call.name, call.ending, call.failure) for call in session.calls] for session in sessions]


def test_a_child_has_a_script_of_its_own_behind_its_parents() -> None:
    first, second = load_recorded_session(LOGS / "delegate-work").sessions

    assert (len(first.calls), len(second.calls)) == (3, 3)
    assert (first.header.parent_session, second.header.parent_session) == (None, first.header.id)


def test_what_a_fork_inherited_stays_its_parents_and_still_stands_in_its_requests() -> None:
    parent, child = load_recorded_session(LOGS / "fork-child").sessions

    assert [call.name for call in child.calls] == ["turn 2 step 1", "turn 2 step 2"]
    assert (len(parent.calls), child.header.seed_length is not None) == (4, True)
    assert "the word is amber" in json.dumps(child.calls[0].body)


def test_a_summary_counts_as_a_call_between_those_of_its_turn() -> None:
    ((first, summary, *rest),) = endings("compact-history")

    assert (first[0], summary[0][:14], [call[0] for call in rest]) == (
        "turn 1 step 1", "summary at seq", ["turn 1 step 2", "turn 1 step 3"],
    )  # fmt: skip


def test_failed_and_unfinished_calls_are_calls_of_which_the_log_says_no_more() -> None:
    (retried,), (cut,) = endings("retry-then-success"), endings("cancel-mid-stream")

    assert [call[1:] for call in retried] == [
        ("failed", "RATE_LIMIT"), ("failed", "TRANSPORT"), ("answered", ""), ("answered", ""),
    ]  # fmt: skip
    assert [call[1] for call in cut] == ["unfinished", "answered"]


async def test_cassettes_58_two_equal_requests_take_two_entries_in_order_and_a_third_fails() -> None:
    player = SessionLogPlayer(LOGS / "retry-then-success")
    again = player.recording.sessions[0].calls[0].body

    refused = await send(player, again)
    with pytest.raises(httpx.ReadError):
        await send(player, again)
    answered = await send(player, again)
    beyond = await send(player, again)

    assert [each.status_code for each in (refused, answered, beyond)] == [429, 200, 400]
    assert "it equals cassettes/session-logs/retry-then-success/session.jsonl, entry 1" in player.misses[0]


async def test_a_childs_request_is_answered_from_its_own_log_while_its_parent_waits() -> None:
    player = SessionLogPlayer(LOGS / "delegate-work")
    parent, child = player.recording.sessions

    await send(player, parent.calls[0].body)
    for call in child.calls:
        assert (await send(player, call.body)).status_code == 200

    assert player.cursors == (1, 3)
    assert [line.partition(":")[0] for line in player.verify()] == [
        "cassettes/session-logs/delegate-work/session.jsonl, entry 2 (turn 1 step 2)",
        "cassettes/session-logs/delegate-work/session.jsonl, entry 3 (turn 1 step 3)",
    ]


async def test_cassettes_57_a_divergence_is_shown_against_the_nearest_entry_of_any_session() -> None:
    player = SessionLogPlayer(LOGS / "delegate-work")
    parent, child = player.recording.sessions
    await send(player, parent.calls[0].body)
    body = json.loads(json.dumps(child.calls[0].body))
    body["messages"][0]["content"] = "another system prompt"

    answer = await send(player, body)

    where, difference, *rest = player.misses[0].split("\n")
    assert answer.status_code == 400
    assert where.partition(": ")[0] == "cassettes/session-logs/delegate-work/session.1.jsonl, entry 1 (turn 1 step 1)"
    assert len(rest) == 1
    assert difference.startswith("  messages[0].content  expected ")
    assert difference.endswith('is "another system prompt"')


def test_a_recording_that_nobody_asked_anything_is_wrong_in_every_entry() -> None:
    player = SessionLogPlayer(LOGS / "delegate-work")

    assert len(player.verify()) == 6
    assert (player.facts()["consumed"], player.facts()["entries"]) == (0, 6)


async def test_a_player_goes_on_where_another_process_ended() -> None:
    player = SessionLogPlayer(LOGS / "delegate-work", begun=(3, 2))
    last = player.recording.sessions[1].calls[2]

    answer = await send(player, last.body)

    assert (answer.status_code, player.cursors, player.verify()) == (200, (3, 3), ())


def write_override(folder: Path, document: object) -> None:
    (folder / "override.json").write_text(json.dumps(document), encoding="utf-8")


HANG = {"session": 0, "call": 1, "hang": True}
RESET = {"session": 0, "call": 2, "throw": {"fault": "reset"}}
TOO_MANY = {"session": 0, "call": 1, "throw": {"http_error": {"status": 429}}}


@pytest.mark.parametrize(
    ("name", "document", "message"),
    [
        pytest.param("fix-test", {"version": 1, "calls": [HANG]}, "its answer is in the log", id="not-needed"),
        pytest.param("retry-then-success", {"version": 1, "calls": [TOO_MANY]}, "has no entry", id="one-is-missing"),
        pytest.param(
            "retry-then-success", {"version": 1, "calls": [HANG, RESET]}, "its entry is a hang", id="of-another-kind"
        ),
        pytest.param(
            "retry-then-success", {"version": 1, "calls": [TOO_MANY, TOO_MANY, RESET]}, "has two entries", id="twice"
        ),
        pytest.param(
            "cancel-mid-stream", {"version": 1, "calls": [HANG, {**HANG, "call": 9}]}, "no call 9", id="no-such-call"
        ),
        pytest.param("cancel-mid-stream", {"version": 2, "calls": [HANG]}, "version: is 2", id="version"),
        pytest.param("cancel-mid-stream", {"version": 1, "calls": []}, "holds no call", id="empty"),
        pytest.param("cancel-mid-stream", {"version": 1, "calls": [HANG], "x": 1}, "unknown field 'x'", id="unknown"),
        pytest.param(
            "cancel-mid-stream", {"version": 1, "calls": [{**HANG, "x": 1}]}, "unknown field 'x'", id="unknown-in-call"
        ),
        pytest.param(
            "cancel-mid-stream", {"version": 1, "calls": [{**HANG, "patch": []}]}, "names 2 kinds", id="two-kinds"
        ),
        pytest.param("cancel-mid-stream", {"version": 1, "calls": [{**HANG, "hang": 1}]}, "hang: is 1", id="no-truth"),
        pytest.param("cancel-mid-stream", {"version": 1, "calls": [{**HANG, "call": 0}]}, "call: is 0", id="number"),
        pytest.param(
            "retry-then-success",
            {"version": 1, "calls": [TOO_MANY, {**RESET, "throw": {"fault": "reset", "error": 1}}]},
            "unknown field 'error'",
            id="unknown-throw",
        ),
    ],
)
def test_an_override_stands_exactly_where_the_log_cannot_say_how_an_answer_ended(
    name: str, document: object, message: str, tmp_path: Path
) -> None:
    folder = copied(name, tmp_path)
    write_override(folder, document)

    with pytest.raises(CassetteError) as caught:
        load_recorded_session(folder)

    assert message in str(caught.value)
    assert caught.value.error_code == "CASSETTE_OVERRIDE"


def test_a_recording_that_needs_an_override_is_refused_without_one(tmp_path: Path) -> None:
    folder = copied("cancel-mid-stream", tmp_path)
    (folder / "override.json").unlink()

    with pytest.raises(CassetteError, match="did not come to its end and has no entry") as caught:
        load_recorded_session(folder)

    assert caught.value.error_code == "CASSETTE_OVERRIDE"


async def test_a_patch_is_given_word_for_word_and_may_copy_from_the_request(tmp_path: Path) -> None:
    folder = copied("retry-then-success", tmp_path)
    patch = {"session": 0, "call": 1, "patch": [{"text": "You said: {{request.messages[1].content}}"}]}
    write_override(folder, {"version": 1, "calls": [patch, RESET]})
    player = SessionLogPlayer(folder)

    answer = await send(player, player.recording.sessions[0].calls[0].body)

    assert (answer.status_code, "You said: Write one line to ledger.txt." in answer.text) == (200, True)


def test_a_throw_in_words_that_no_script_knows_is_named(tmp_path: Path) -> None:
    folder = copied("retry-then-success", tmp_path)
    write_override(folder, {"version": 1, "calls": [TOO_MANY, {**RESET, "throw": {"fault": "explode"}}]})

    with pytest.raises(CassetteError, match="its answers cannot be played") as caught:
        SessionLogPlayer(folder)

    assert caught.value.error_code == "CASSETTE_OVERRIDE"


def drop_child(folder: Path) -> None:
    (folder / "session.1.jsonl").rename(folder / "session.2.jsonl")


def add_file(folder: Path) -> None:
    (folder / "notes.txt").write_text("", encoding="utf-8")


def drop_root(folder: Path) -> None:
    (folder / "session.jsonl").unlink()


def repeat_root(folder: Path) -> None:
    shutil.copyfile(folder / "session.jsonl", folder / "session.1.jsonl")


def change_header(folder: Path, **fields: object) -> None:
    path = folder / "session.1.jsonl"
    header, _, rest = path.read_text(encoding="utf-8").partition("\n")
    path.write_text(json.dumps({**json.loads(header), **fields}) + "\n" + rest, encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        pytest.param(drop_child, "CASSETTE_DAMAGED", "session.1.jsonl is missing", id="gap"),
        pytest.param(add_file, "CASSETTE_DAMAGED", "is no file of a recording", id="stray-file"),
        pytest.param(drop_root, "CASSETTE_MISSING", "session.jsonl", id="no-root"),
        pytest.param(repeat_root, "CASSETTE_DUPLICATE_ID", "stands twice", id="same-session-twice"),
        pytest.param(
            lambda folder: change_header(folder, parentSession="another"),
            "CASSETTE_DAMAGED",
            "its parent 'another' is no session before it",
            id="foreign-parent",
        ),
        pytest.param(
            lambda folder: (folder / "origin.json").write_text("{", encoding="utf-8"),
            "CASSETTE_UNDECODABLE",
            "not valid JSON",
            id="origin",
        ),
    ],
)
def test_a_family_that_is_not_whole_is_named(
    damage: Callable[[Path], None], code: str, message: str, tmp_path: Path
) -> None:
    folder = copied("delegate-work", tmp_path)
    damage(folder)

    with pytest.raises(CassetteError) as caught:
        load_recorded_session(folder)

    assert (caught.value.error_code, message in str(caught.value)) == (code, True)


# Compactions that came to nothing


def rewrite(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    path = folder / "session.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(rows)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def end_with(outcome: str) -> Callable[[list[dict[str, Any]]], object]:
    def change(rows: list[dict[str, Any]]) -> None:
        (end,) = [row for row in rows if row["type"] == "compaction/end"]
        end["data"]["outcome"] = outcome

    return change


def lose_the_end(rows: list[dict[str, Any]]) -> None:
    (end,) = [row for row in rows if row["type"] == "compaction/end"]
    end.update(type="compaction/note", ignorable=True)


def swap_results(rows: list[dict[str, Any]]) -> None:
    """The long file first: both what stands before the second step and what stands behind it may be summed up then."""
    first, second = [row["data"]["message"]["content"][0] for row in rows if row["type"] == "tool/result"][:2]
    first["content"], second["content"] = second["content"], first["content"]


def test_a_compaction_that_failed_is_a_failed_call_before_the_step_that_went_on() -> None:
    ((*_, second, summary, third, last),) = endings("compact-fails")

    assert (second[:2], summary, third[:2], last[:2]) == (
        ("turn 1 step 2", "answered"),
        ("summary at seq 28", "failed", "SERVER"),
        ("turn 1 step 3", "answered"),
        ("turn 1 step 4", "answered"),
    )


async def test_the_request_of_a_failed_compaction_is_compared_and_answered_with_its_failure() -> None:
    player = SessionLogPlayer(LOGS / "compact-fails", begun=(2,))
    call = player.recording.sessions[0].calls[2]
    body = json.loads(json.dumps(call.body))
    body["messages"][1]["content"] += "!"

    missed = await send(player, body)
    refused = await send(player, call.body)

    assert (missed.status_code, refused.status_code, "no summaries today" in refused.text) == (400, 503, True)
    assert player.cursors == (3,)
    assert player.misses[0].startswith(
        "cassettes/session-logs/compact-fails/session.jsonl, entry 3 (summary at seq 28): sent body differs"
    )


async def test_each_span_that_a_failed_compaction_may_have_taken_is_let_through_and_no_other(tmp_path: Path) -> None:
    folder = copied("compact-fails", tmp_path)
    rewrite(folder, swap_results)
    call = SessionLogPlayer(folder).recording.sessions[0].calls[2]
    bodies: list[Any] = list(call.bodies())

    answers = [(await send(SessionLogPlayer(folder, begun=(2,)), body)).status_code for body in bodies]

    shorter, longer = (body["messages"][1]["content"] for body in bodies)
    assert (answers, longer.startswith(shorter), shorter == longer) == ([503, 503], True, False)
    bodies[0]["messages"][1]["content"] = longer[: len(shorter) + 1]
    assert (await send(SessionLogPlayer(folder, begun=(2,)), bodies[0])).status_code == 400


async def test_a_compaction_that_was_cancelled_is_an_unfinished_call(tmp_path: Path) -> None:
    folder = copied("compact-fails", tmp_path)
    rewrite(folder, end_with("cancelled"))
    with pytest.raises(CassetteError, match=r"call 3 of session 0 \(summary at seq 28\) did not come to its end"):
        load_recorded_session(folder)
    write_override(folder, {"version": 1, "calls": [{**HANG, "call": 3}]})

    ((*_, summary, _, _),) = [session.calls for session in load_recorded_session(folder).sessions]

    assert (summary.name, summary.ending, summary.chunks) == ("summary at seq 28", "unfinished", ())


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        pytest.param(end_with("done"), "line 31, data.outcome", "'done' does not tell", id="done-without-a-summary"),
        pytest.param(end_with("failed"), "line 31, data.outcome", "'failed' does not tell", id="no-reason"),
        pytest.param(
            end_with("failed: RuntimeError: boom"), "line 31, data.outcome", "does not tell whether", id="no-code"
        ),
        pytest.param(
            end_with("failed: could not write: No space left on device [LOG_WRITE_FAILED]"),
            "line 31, data.outcome",
            "the log itself could not be written [LOG_WRITE_FAILED]",
            id="full-disk",
        ),
        pytest.param(
            end_with("failed: another writer holds this log [LOG_BUSY]"),
            "line 31, data.outcome",
            "the log itself could not be written [LOG_BUSY]",
            id="other-writer",
        ),
        pytest.param(lose_the_end, "line 30, data.compactionId", "has no end", id="no-end"),
    ],
)
def test_a_compaction_that_no_replay_can_repeat_is_named_by_file_line_and_field(
    change: Callable[[list[dict[str, Any]]], object], place: str, message: str, tmp_path: Path
) -> None:
    folder = copied("compact-fails", tmp_path)
    rewrite(folder, change)

    with pytest.raises(CassetteError) as caught:
        load_recorded_session(folder)

    assert (caught.value.error_code, caught.value.where) == (
        "CASSETTE_UNREPLAYABLE",
        f"cassettes/session-logs/compact-fails/session.jsonl, {place}",
    )
    assert message in caught.value.what


def test_a_compaction_before_there_was_anything_to_sum_up_is_named(tmp_path: Path) -> None:
    folder = copied("compact-history", tmp_path)

    def change(rows: list[dict[str, Any]]) -> None:
        bracket = [row for row in rows if row["type"] in ("compaction/start", "compaction/end")]
        data = {"compactionId": "early"}
        rows[1] = {**bracket[0], "seq": 0, "data": {**data, "reason": "manual"}}
        rows[2] = {**bracket[1], "seq": 1, "data": {**data, "outcome": "cancelled"}}

    rewrite(folder, change)

    with pytest.raises(CassetteError) as caught:
        load_recorded_session(folder)

    assert (caught.value.error_code, caught.value.where[-20:]) == ("CASSETTE_UNREPLAYABLE", "line 3, data.outcome")


def test_a_line_is_told_by_the_events_before_it_also_when_some_are_packed() -> None:
    rows = [{"type": "session"}, {"type": "text-chunks", "seq0": 0}, {"type": "step/end", "seq": 3}]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    assert [line_of(data, seq) for seq in range(4)] == [2, 2, 2, 3]
