"""The headless surface reports one interval of one log, and its exit code tells the truth."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.assemble import Assembled
from harness.errors import LogWriteError
from harness.log.events import Cause, Event, InboxSpliced, TurnEnd, TurnStart
from harness.log.json_form import event_to_json
from harness.model.messages import Message, MessageId, TextBlock, UserSource
from harness.transport.stdio import OutputClosedError, StandardStreams
from lanes.unit.surfaces.conftest import Bench
from lanes.unit.surfaces.scripted import refuse, say, use


def message(text: str) -> Message:
    return Message(MessageId(f"message-{text}"), "user", (TextBlock(text),), UserSource())


def on_event(kind: type[object], act: Callable[[Assembled, Event], object]) -> Callable[[Assembled], None]:
    """A hook that acts once, at the first event of that kind."""

    def hook(assembled: Assembled) -> None:
        def observer(event: Event) -> None:
            if isinstance(event.payload, kind):
                detach()
                act(assembled, event)

        detach = assembled.writer.log.observe(observer)

    return hook


def followup_at_start(text: str) -> Callable[[Assembled], None]:
    return on_event(TurnStart, lambda assembled, event: assembled.agent.followup(message(text)))


async def test_HL01_text_of_earlier_turns_of_the_same_log_never_reaches_the_output(bench: Bench) -> None:
    await bench.run(say("old"))
    outcome = await bench.run(say(""), resume=bench.session_ids()[0])
    assert (outcome.exit_code, outcome.out, len(outcome.script.requests[0]["messages"])) == (0, "\n", 4)


async def test_HL02_an_empty_last_message_does_not_erase_the_text_of_an_earlier_turn(bench: Bench) -> None:
    outcome = await bench.run(say("kept"), say(""), hook=followup_at_start("more"))
    assert (outcome.exit_code, outcome.out, len(outcome.script.requests)) == (0, "kept\n", 2)


async def test_HL03_work_queued_before_idle_belongs_to_the_answer(bench: Bench) -> None:
    outcome = await bench.run(say("first"), say("second"), hook=followup_at_start("more"))
    assert (outcome.exit_code, outcome.out) == (0, "second\n")


def cancel_at_once(assembled: Assembled) -> None:
    on_event(InboxSpliced, lambda assembled, event: assembled.agent.cancel(Cause("user")))(assembled)


def cancel_with_nobody_else_writing(assembled: Assembled) -> None:
    """No turn runs that would store its own end, and the log's own writing comes too late."""
    cancel_at_once(assembled)
    assembled.writer._later = lambda delay_s, callback: asyncio.get_running_loop().call_later(3600, callback)


@pytest.mark.parametrize(
    ("replies", "hook", "last"),
    [
        pytest.param([say("done")], None, "turn/end", id="turn"),
        pytest.param([], cancel_with_nobody_else_writing, "agent/inbox/spliced", id="no-turn"),
    ],
)
async def test_HL04_the_log_is_durable_before_anything_is_printed(
    replies: list[Any], hook: Callable[[Assembled], None] | None, last: str, bench: Bench
) -> None:
    seen: list[str] = []

    class Watching(StandardStreams):
        def write(self, text: str) -> None:
            seen.extend(line["type"] for log in bench.logs() for line in log)
            super().write(text)

    outcome = await bench.run(
        *replies, hook=hook, streams=lambda out, err: Watching(input_fd=None, output_fd=out, error_fd=err)
    )
    assert (seen[-1:], outcome.out[-1:]) == ([last], "\n")


async def test_HL05_an_empty_text_still_prints_a_newline_and_no_turn_exits_5(bench: Bench) -> None:
    outcome = await bench.run(hook=cancel_at_once)
    assert (outcome.exit_code, outcome.out, outcome.err, outcome.script.requests) == (
        5,
        "\n",
        "harness: no turn ran\n",
        [],
    )


async def test_HL06_the_last_ending_counts_and_the_text_before_it_is_kept(bench: Bench) -> None:
    outcome = await bench.run(say("half"), refuse(401, "bad key"), hook=followup_at_start("more"))
    assert (outcome.exit_code, outcome.out) == (1, "half\n")
    assert outcome.err.startswith("harness: AUTH: ")
    assert outcome.err.count("\n") == 1


async def test_HL07_success_leaves_standard_error_empty(bench: Bench) -> None:
    outcome = await bench.run(use("list_files", {}), say("done", usage=(5, 3)))
    assert (outcome.exit_code, outcome.out, outcome.err) == (0, "done\n", "")


@pytest.mark.parametrize(
    ("replies", "flags", "exit_code", "err"),
    [
        pytest.param(
            [say("cut", finish="length")],
            {},
            3,
            "harness: max-tokens: the model's answer was cut at its token limit\n",
            id="max-tokens",
        ),
        pytest.param(
            [use("list_files", {}, call_id=f"call_{n}") for n in range(3)],
            {"max_steps": 2},
            3,
            "harness: step-limit: the turn was ended after 2 steps\n",
            id="step-limit",
        ),
    ],
)
async def test_every_ending_has_its_exit_code_and_one_line(
    replies: list[Any], flags: dict[str, Any], exit_code: int, err: str, bench: Bench
) -> None:
    outcome = await bench.run(*replies, flags=flags)
    assert (outcome.exit_code, outcome.err) == (exit_code, err)


async def test_a_turn_cancelled_by_someone_else_exits_4(bench: Bench) -> None:
    agents: list[Assembled] = []

    async def cancel() -> None:
        agents[0].agent.cancel(Cause("parent"))

    outcome = await bench.run(say("partial", hold=1), hook=agents.append, on_hold=cancel)
    assert (outcome.exit_code, outcome.out, outcome.err) == (
        4,
        "\n",
        "harness: aborted: the turn was cancelled by parent\n",
    )


async def test_HL11_a_second_signal_ends_the_process_at_once_while_a_disposer_hangs(bench: Bench) -> None:
    def hang_and_interrupt(assembled: Assembled) -> None:
        async def dispose() -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

        assembled.agent.dispose = dispose  # type: ignore[method-assign] # a disposer that never ends

    async def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    outcome = await bench.run(say("x", hold=1), hook=hang_and_interrupt, on_hold=interrupt, drain_s=10)
    assert (outcome.forced, outcome.err) == ([130], "harness: SIGINT; the turn ended aborted\n")


async def test_HL11_a_second_signal_does_not_wait_for_the_drain(bench: Bench) -> None:
    def interrupt_when_cancelled(assembled: Assembled) -> None:
        assembled.agent.when_idle = asyncio.Event().wait  # type: ignore[method-assign,assignment] # never ends
        assembled.agent.cancel = interrupt_again  # type: ignore[method-assign,assignment] # says when the drain began

    def interrupt_again(cause: Cause) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    async def terminate() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    outcome = await bench.run(say("x", hold=1), hook=interrupt_when_cancelled, on_hold=terminate, drain_s=10)
    assert (outcome.forced, outcome.err) == ([130], "")


async def test_a_signal_during_an_ordinary_end_forces_it(bench: Bench) -> None:
    def hang(assembled: Assembled) -> None:
        async def dispose() -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()

        assembled.agent.dispose = dispose  # type: ignore[method-assign] # a disposer that never ends

    outcome = await bench.run(say("done"), hook=hang, drain_s=10)
    assert (outcome.out, outcome.forced) == ("done\n", [143])


async def test_HL12_a_drain_that_never_ends_is_cut_at_its_bound(bench: Bench) -> None:
    def never_idle(assembled: Assembled) -> None:
        assembled.agent.when_idle = asyncio.Event().wait  # type: ignore[method-assign,assignment] # never ends

    async def terminate() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    async with asyncio.timeout(20):
        outcome = await bench.run(say("x", hold=1), hook=never_idle, on_hold=terminate, drain_s=0.05)
    assert outcome.forced == [143]
    assert outcome.err == "harness: SIGTERM; the turn did not end within 0.05 s and was cut off\n"


async def test_HL12_a_close_that_never_ends_is_cut_at_its_bound_and_is_no_success(bench: Bench) -> None:
    def hang(assembled: Assembled) -> None:
        assembled.agent.dispose = asyncio.Event().wait  # type: ignore[method-assign,assignment] # never ends

    async with asyncio.timeout(20):
        outcome = await bench.run(say("done"), hook=hang, drain_s=0.05)
    assert (outcome.out, outcome.forced) == ("done\n", [1])


async def test_HL13_a_failed_start_says_its_cause_in_one_line_and_prints_nothing(bench: Bench) -> None:
    bench.sessions.touch()
    outcome = await bench.run(say("never"))
    assert (outcome.exit_code, outcome.out, outcome.err.count("\n"), outcome.script.requests) == (1, "", 1, [])
    assert outcome.err.startswith("harness: ")
    assert "Not a directory [LOG_WRITE_FAILED]" in outcome.err


async def test_HL13_a_failure_nobody_foresaw_says_its_cause_in_one_line(bench: Bench) -> None:
    def fail(assembled: Assembled) -> None:
        assembled.agent.followup = fail_followup  # type: ignore[method-assign] # a bug of our own

    def fail_followup(message: Message) -> None:
        raise RuntimeError("a bug\nin two lines")

    outcome = await bench.run(say("never"), hook=fail)
    assert (outcome.exit_code, outcome.out, outcome.err) == (1, "", "harness: RuntimeError: a bug in two lines\n")


async def test_HL14_json_is_the_log_from_the_receipt_on_and_one_result(bench: Bench) -> None:
    await bench.run(say("old"))
    first_seq = len(bench.logs()[0])
    outcome = await bench.run(
        use("list_files", {}), say("done", usage=(5, 3)), as_json=True, resume=bench.session_ids()[0]
    )
    *events, result = outcome.records
    stored = bench.logs()[0][first_seq:]
    assert stored[0]["type"] == "session/end-seed"
    assert events[0]["event"]["type"] == "agent/inbox/spliced"
    assert [event["event"]["seq"] for event in events] == list(range(first_seq + 1, first_seq + 1 + len(events)))
    assert {event["type"] for event in events} == {"session_event"}
    assert {event["sessionId"] for event in outcome.records} == {bench.session_ids()[0]}
    assert result == {
        "type": "result",
        "sessionId": bench.session_ids()[0],
        "output": "done",
        "usage": {"inputTokens": 5, "outputTokens": 3},
    }


async def test_HL14_printed_events_equal_the_log(bench: Bench) -> None:
    logs: list[Any] = []
    outcome = await bench.run(
        use("list_files", {}), say("done"), as_json=True, hook=lambda assembled: logs.append(assembled.writer.log)
    )
    printed = [record["event"] for record in outcome.records[:-1]]
    assert printed == [event_to_json(event) for event in logs[0]]


async def test_HL14_a_failed_turn_still_has_its_result(bench: Bench) -> None:
    outcome = await bench.run(refuse(401, "bad key"), as_json=True)
    assert (outcome.exit_code, outcome.records[-1]["type"], outcome.records[-1]["output"]) == (1, "result", "")
    assert outcome.err.startswith("harness: AUTH: ")


async def test_the_receipt_is_printed_only_when_it_is_durable(bench: Bench) -> None:
    seen: list[list[str]] = []

    class Watching(StandardStreams):
        def write_bytes(self, data: bytes) -> None:
            seen.append([line["type"] for line in bench.logs()[0]])
            super().write_bytes(data)

    await bench.run(
        say("done"),
        as_json=True,
        streams=lambda out, err: Watching(input_fd=None, output_fd=out, error_fd=err),
    )
    assert "agent/inbox/spliced" in seen[0]


async def test_HL15_usage_of_a_message_replaces_the_chunk_of_its_step(bench: Bench) -> None:
    outcome = await bench.run(
        use("list_files", {}), say("done", usage=(7, 2)), as_json=True, hook=followup_at_start("x")
    )
    chunks = [r for r in outcome.records if r.get("event", {}).get("type") == "assistant/chunk"]
    usage = [c["event"]["data"]["chunk"] for c in chunks if c["event"]["data"]["chunk"]["type"] == "usage"]
    assert (len(usage), outcome.records[-1]["usage"]) == (1, {"inputTokens": 7, "outputTokens": 2})


async def test_HL16_resume_continues_the_seqs_and_sends_the_history(bench: Bench) -> None:
    await bench.run(say("one"), task="first")
    before = bench.logs()[0]
    outcome = await bench.run(say("two"), task="second", resume=bench.session_ids()[0])
    after = bench.logs()[0]
    assert (outcome.exit_code, outcome.out, len(bench.logs())) == (0, "two\n", 1)
    assert after[: len(before)] == before
    contents = [message["content"] for message in outcome.script.requests[0]["messages"][1:]]
    assert contents == ["first", "one", "second"]


async def test_HL16_an_unknown_session_is_refused_before_any_model_call(bench: Bench) -> None:
    outcome = await bench.run(say("never"), resume="nope")
    assert (outcome.exit_code, outcome.out, outcome.script.requests) == (6, "", [])
    assert "SESSION_NOT_FOUND" in outcome.err


async def test_HL16_a_session_another_process_works_on_is_refused(bench: Bench) -> None:
    inner: list[Any] = []

    async def resume_again() -> None:
        other = Bench.__new__(Bench)
        other.folder, other.work, other.sessions = bench.folder / "other", bench.work, bench.sessions
        make_folder(other.folder)
        inner.append(await other.run(say("never"), resume=bench.session_ids()[0]))

    async def flush_and_resume() -> None:
        await agents[0].writer.flush()
        await resume_again()

    agents: list[Assembled] = []
    outcome = await bench.run(say("done", hold=1), hook=agents.append, on_hold=flush_and_resume)
    assert (outcome.exit_code, outcome.out, inner[0].exit_code, inner[0].script.requests) == (0, "done\n", 6, [])
    assert "LOG_BUSY" in inner[0].err


async def test_HL16_a_session_whose_log_cannot_be_written_is_refused_like_any_other(bench: Bench) -> None:
    await bench.run(say("done"))
    session_id = bench.session_ids()[0]
    (log,) = bench.sessions.rglob("session.jsonl")
    log.rename(bench.folder / "elsewhere.jsonl")
    log.symlink_to(bench.folder / "elsewhere.jsonl")
    outcome = await bench.run(say("never"), resume=session_id)
    assert (outcome.exit_code, outcome.out, outcome.script.requests) == (6, "", [])
    assert "it is a link and no file of its own [LOG_WRITE_FAILED]" in outcome.err


def make_folder(path: Path) -> None:
    path.mkdir()


class Gone(StandardStreams):
    """Standard output whose reader is gone."""

    def write(self, text: str) -> None:
        raise OutputClosedError("standard output is closed")

    def write_bytes(self, data: bytes) -> None:
        raise OutputClosedError("standard output is closed")


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
async def test_HL17_a_closed_output_exits_1_with_one_line(as_json: bool, bench: Bench) -> None:
    outcome = await bench.run(
        say("done"), as_json=as_json, streams=lambda out, err: Gone(input_fd=None, output_fd=out, error_fd=err)
    )
    assert (outcome.exit_code, outcome.out, outcome.err) == (1, "", "harness: standard output is closed\n")


async def test_HL17_work_nobody_reads_is_cancelled(bench: Bench) -> None:
    async def hold() -> None:
        await asyncio.Event().wait()

    outcome = await bench.run(
        say("never", hold=1),
        as_json=True,
        on_hold=hold,
        streams=lambda out, err: Gone(input_fd=None, output_fd=out, error_fd=err),
    )
    assert (outcome.exit_code, bench.logs()[0][-1]["data"]["reason"]["kind"]) == (1, "aborted")


async def test_a_log_that_cannot_be_made_durable_exits_1_with_the_text_printed(bench: Bench) -> None:
    def break_flush(assembled: Assembled) -> None:
        async def flush() -> None:
            raise LogWriteError("disk full")

        on_event(TurnEnd, lambda a, e: setattr(a.writer, "flush", flush))(assembled)

    outcome = await bench.run(say("done"), hook=break_flush)
    assert (outcome.exit_code, outcome.out) == (1, "done\n")
    assert "harness: the session log is not durable: disk full [LOG_WRITE_FAILED]\n" in outcome.err


async def test_a_timeout_exits_124_and_closes_the_turn(bench: Bench) -> None:
    async def hold() -> None:
        await asyncio.Event().wait()

    outcome = await bench.run(say("partial", hold=1), on_hold=hold, timeout_s=0.05)
    assert (outcome.exit_code, outcome.out, outcome.err) == (
        124,
        "\n",
        "harness: not finished after 0.05 s; the turn ended aborted\n",
    )
    assert bench.logs()[0][-1]["data"]["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}


async def test_a_process_left_in_the_background_is_ended_and_named(bench: Bench) -> None:
    outcome = await bench.run(use("shell", {"command": "sleep 42.201 & echo on"}), say("done"))
    assert (outcome.exit_code, outcome.out, outcome.err) == (
        0,
        "done\n",
        "harness: ended a process left in the background: sleep 42.201\n",
    )


async def test_verbose_names_the_session(bench: Bench) -> None:
    outcome = await bench.run(say("done"), verbose=True)
    assert outcome.err.splitlines()[0] == f"harness: session {bench.session_ids()[0]}"


async def test_progress_is_shown_at_a_terminal_without_control_characters(bench: Bench) -> None:
    master, slave = pty.openpty()
    try:
        outcome = await bench.run(
            use("read_file", {"path": "x\x1b[31m"}),
            say("done", usage=(5, 3)),
            streams=lambda out, err: StandardStreams(input_fd=None, output_fd=out, error_fd=slave),
        )
        shown = os.read(master, 65536).decode().replace("\r\n", "\n")
    finally:
        os.close(master)
        os.close(slave)
    assert (outcome.exit_code, outcome.out, outcome.err) == (0, "done\n", "")
    assert shown == (
        'step 1\n  read_file {"path": "x\\u001b[31m"}\n    failed: PATH_MISSING\nstep 2\n  5 tokens in, 3 out\n'
    )


async def test_two_seeded_runs_write_equal_logs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for name in ("one", "two"):
        bench.sessions = bench.folder / name
        settings = bench.settings()
        monkeypatch.setattr(bench, "settings", lambda settings=settings: seeded(settings))
        outcome = await bench.run(use("shell", {"command": "echo hi"}), say("done", usage=(1, 1)), as_json=True)
        logs.append((outcome.out, [path.read_bytes() for path in sorted(bench.sessions.rglob("session.jsonl"))]))
        monkeypatch.undo()
    assert logs[0] == logs[1]
    assert b'"createdAt":1700000000000' in logs[0][1][0]


def seeded(settings: Any) -> Any:
    from dataclasses import replace

    return replace(settings, seed="x")


async def test_the_system_text_holds_no_path_and_no_date(bench: Bench) -> None:
    import re

    outcome = await bench.run(say("done"))
    system = outcome.script.requests[0]["messages"][0]["content"]
    assert re.findall(r"/\w+|20\d\d|" + re.escape(str(bench.folder)), system) == []


async def test_a_failing_service_is_asked_again_without_a_long_wait(bench: Bench) -> None:
    outcome = await bench.run(refuse(503, "busy"), refuse(503, "busy"), say("done"))
    assert (outcome.exit_code, outcome.out, len(outcome.script.requests)) == (0, "done\n", 3)
