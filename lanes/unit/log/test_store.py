"""Sessions on disk."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import (
    InvalidEventError,
    LogBusyError,
    LogDamagedError,
    LogError,
    LogUnsupportedError,
    LogWriteError,
    SessionExistsError,
    SessionNotFoundError,
)
from harness.log.events import EndSeed, SessionHeader, StepStart, TurnStart
from harness.log.fold import fold_messages, highest_turn, last_turn_end
from harness.log.inbox import fold_inbox
from harness.log.invariants import Invariants
from harness.log.store import SessionStore
from harness.model.messages import SessionId

S = SessionId("s1")


def _header(session_id="s1", **fields):
    return SessionHeader(SessionId(session_id), 1, **fields)


@pytest.fixture
def store(make, tmp_path):
    return SessionStore(tmp_path / "root", clock=make.clock())


def _files(store, pattern="*.jsonl*"):
    return sorted(path.relative_to(store.root).as_posix() for path in store.root.rglob(pattern))


async def _stored(store, make, *, turns=1, open_turn=False, session_id="s1", **fields):
    """A closed session on disk."""
    writer = await store.create(_header(session_id, **fields))
    for turn in range(1, turns + 1):
        make.turn(writer.log, turn, chunks=3)
    if open_turn:
        make.open_step(writer.log, turns + 1)
    await writer.close()
    return writer.path


async def test_P01_no_file_before_the_first_batch_and_then_header_and_batch_together(make, store):
    writer = await store.create(_header(cwd="/w"))
    assert _files(store) == []
    make.prompt(writer.log)
    assert _files(store) == []
    await writer.flush()
    assert _files(store) == ["w/s1/session.jsonl"]
    assert len(writer.path.read_bytes().splitlines()) == 2
    await writer.close()


async def test_P01_a_session_that_never_said_anything_leaves_no_file(store):
    writer = await store.create(_header())
    await writer.close()
    assert (_files(store, "*.jsonl*"), _files(store, "*.lock"), store.list()) == ([], [], ())


async def test_files_and_folders_are_for_their_owner_only(make, store):
    path = await _stored(store, make)
    assert [oct(at.stat().st_mode & 0o777) for at in (path, path.parent, path.parent.parent, store.root)] == [
        "0o600",
        "0o700",
        "0o700",
        "0o700",
    ]


@pytest.mark.parametrize("name", ["../../x", "a/b", "nul\x00", ".", "..", "\ud83d"], ids=ascii)
async def test_P02_a_hostile_id_is_stored_inside_the_root_and_resumed(make, store, tmp_path, name):
    await _stored(store, make, session_id=name)
    writer = await store.resume(SessionId(name))
    await writer.close()
    outside = [path for path in tmp_path.rglob("*.jsonl") if store.root not in path.parents]
    assert (outside, [listing.header.id for listing in store.list()]) == ([], [name])


async def test_P03_a_torn_last_line_is_dropped_and_the_next_append_goes_on_behind_whole_records(make, store):
    path = await _stored(store, make)
    good = path.read_bytes()
    stored = len(store.inspect(S).log)
    path.write_bytes(good + b'{"type":"turn/start","seq":12,"ti')
    writer = await store.resume(S)
    assert "torn" in writer.damage
    event = writer.log.append(TurnStart(2))
    await writer.close()
    assert (path.read_bytes()[: len(good)], event.seq) == (good, stored + 1)
    assert list(store.inspect(S).log)[: event.seq + 1] == list(writer.log)


async def test_a_last_record_without_its_newline_is_kept_without_a_notice(make, store):
    path = await _stored(store, make)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    writer = await store.resume(S)
    await writer.close()
    assert (writer.damage, path.read_bytes()[: len(whole)]) == (None, whole)


async def test_P04_damage_behind_which_a_turn_ends_is_refused_and_the_file_is_untouched(make, store):
    path = await _stored(store, make, turns=2)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b"garbage\n"
    spoiled = b"".join(lines)
    path.write_bytes(spoiled)
    for attempt in (store.resume, lambda session: asyncio.to_thread(store.inspect, session)):
        with pytest.raises(LogDamagedError) as caught:
            await attempt(S)
        assert str(path) in str(caught.value)
    assert (path.read_bytes(), _files(store, "*.lock")) == (spoiled, [])


async def test_P04_damage_behind_which_no_turn_ends_keeps_the_prefix(make, store):
    path = await _stored(store, make, open_turn=True)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:-1], b"garbage\n", lines[-1]]))
    writer = await store.resume(S)
    await writer.close()
    assert path.read_bytes().startswith(b"".join(lines[:-1]))
    assert "does not read" in writer.damage


async def test_P05_opening_an_interrupted_session_closes_it_on_disk_once(make, store):
    path = await _stored(store, make, open_turn=True)
    before = path.read_bytes()
    view = store.inspect(S)
    assert path.read_bytes() == before
    writer = await store.resume(S)
    closed = path.read_bytes()
    assert make.types(writer.log)[-3:] == ["step/end", "turn/end", "session/end-seed"]
    assert (closed.startswith(before), list(view.log)) == (True, list(writer.log)[:-1])
    await writer.close()
    again = await store.resume(S)
    await again.close()
    assert list(again.log) == list(writer.log)


async def test_P12_an_id_that_exists_is_refused_under_any_project(make, store):
    path = await _stored(store, make, cwd="/one")
    before = path.read_bytes()
    for cwd in ("/one", "/two", None):
        with pytest.raises(SessionExistsError):
            await store.create(_header(cwd=cwd))
    assert path.read_bytes() == before


async def test_P12_a_live_id_is_neither_created_nor_resumed(make, store):
    writer = await store.create(_header())
    with pytest.raises(LogBusyError):
        await store.create(_header(cwd="/other"))
    make.prompt(writer.log)
    await writer.flush()
    with pytest.raises(SessionExistsError):
        await store.create(_header(cwd="/other"))
    with pytest.raises(LogBusyError) as caught:
        await store.resume(S)
    assert (str(writer.path) in str(caught.value), str(os.getpid()) in str(caught.value)) == (True, True)
    await writer.close()
    await (await store.resume(S)).close()


async def test_P12_a_name_that_appears_before_the_first_batch_is_not_written_over(make, store):
    writer = await store.create(_header())
    writer.path.parent.mkdir(parents=True)
    writer.path.write_bytes(b"somebody else's\n")
    make.prompt(writer.log)
    with pytest.raises(SessionExistsError):
        await writer.flush()
    with pytest.raises(SessionExistsError):
        await writer.close()
    assert (writer.path.read_bytes(), _files(store)) == (b"somebody else's\n", ["no-project/s1/session.jsonl"])


async def test_P12_an_id_stored_by_another_process_in_the_last_moment_is_refused(make, store, monkeypatch):
    looked = []
    look = SessionStore._check_absent

    def appears_after_the_first_look(self, session_id):
        look(self, session_id)
        looked.append(session_id)
        if len(looked) == 1:
            path = self.path_of(session_id, "/other")
            path.parent.mkdir(parents=True)
            path.write_bytes(b"")

    monkeypatch.setattr(SessionStore, "_check_absent", appears_after_the_first_look)
    with pytest.raises(SessionExistsError):
        await store.create(_header())
    assert _files(store, "*.lock") == []


async def test_P13_a_foreign_append_is_detected_before_the_next_write_and_nothing_is_merged(make, store):
    writer = await store.create(_header())
    make.prompt(writer.log)
    await writer.flush()
    with writer.path.open("ab") as file:
        file.write(b"foreign\n")
    before = writer.path.read_bytes()
    writer.log.append(TurnStart(1))
    for _ in range(2):
        with pytest.raises(LogBusyError, match="touched"):
            await writer.flush()
    with pytest.raises(LogBusyError):
        await writer.close()
    assert (writer.path.read_bytes(), len(writer.failures)) == (before, 1)


@pytest.mark.parametrize("how", ["removed", "replaced", "moved"])
async def test_P13_a_file_whose_name_was_taken_away_is_written_no_more(make, store, how):
    writer = await store.create(_header())
    make.prompt(writer.log)
    await writer.flush()
    if how == "moved":
        writer.path.rename(writer.path.with_name("other"))
    else:
        data = writer.path.read_bytes()
        writer.path.unlink()
        if how == "replaced":
            writer.path.write_bytes(data)
    writer.log.append(TurnStart(1))
    with pytest.raises(LogBusyError):
        await writer.close()


async def test_reading_goes_on_while_a_writer_holds_the_log(make, store):
    writer = await store.create(_header())
    make.open_step(writer.log)
    await writer.flush()
    view = store.inspect(S)
    assert (view.live, view.damage, list(view.log), len(store.list())) == (True, None, list(writer.log), 1)
    await writer.close()
    assert (store.inspect(S).live, len(store.inspect(S).log)) == (False, len(writer.log) + 2)


BAD_FILES = {
    "empty": (b"", "LOG_DAMAGED"),
    "garbage": (b"\xff\xfe\x00garbage\n", "LOG_DAMAGED"),
    "newer": (b'{"type":"session","version":9}\n', "LOG_UNSUPPORTED"),
    "of_another_id": (b'{"type":"session","version":0,"id":"else","createdAt":1}\n', "LOG_DAMAGED"),
    "endless_line": (b"x" * 200_000, "LOG_DAMAGED"),
}


async def test_P14_a_file_that_cannot_be_read_hides_no_other_and_tells_why(make, store):
    await _stored(store, make, session_id="good")
    for name, (data, _) in BAD_FILES.items():
        path = store.path_of(SessionId(name), None)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    dangling = store.path_of(SessionId("dangling"), None)
    dangling.parent.mkdir()
    dangling.symlink_to("nowhere")
    folder = store.path_of(SessionId("folder"), None)
    folder.mkdir(parents=True)
    found = {listing.path.parent.name: listing for listing in store.list()}
    assert (found["good"].header.id, found["good"].problem) == ("good", None)
    assert {name: found[name].problem.rpartition("[")[2].strip("]") for name in BAD_FILES} == {
        name: code for name, (_, code) in BAD_FILES.items()
    }
    assert (found["dangling"].problem, found["folder"].problem) == (
        "it is a link to something that is not there",
        "it is a folder",
    )


async def test_an_unreadable_project_folder_hides_no_other(make, store, monkeypatch):
    await _stored(store, make, cwd="/good")
    await _stored(store, make, session_id="s2", cwd="/bad")
    listed = Path.iterdir

    def iterdir(self):
        if self.name == "bad":
            raise PermissionError(13, "Permission denied")
        return listed(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert [(listing.path.name, listing.problem) for listing in store.list()] == [
        ("bad", "Permission denied"),
        ("session.jsonl", None),
    ]


def test_an_empty_or_missing_root_lists_nothing(store):
    assert store.list() == ()


async def test_a_session_nobody_stored_is_not_found(store):
    with pytest.raises(SessionNotFoundError):
        await store.resume(SessionId("ghost"))
    with pytest.raises(SessionNotFoundError):
        store.inspect(SessionId("ghost"))


async def test_a_file_in_the_wrong_folder_is_refused_and_untouched(make, store):
    path = await _stored(store, make, cwd="/one")
    moved = store.path_of(SessionId("s2"), "/one")
    moved.parent.mkdir()
    path.rename(moved)
    before = moved.read_bytes()
    with pytest.raises(LogDamagedError, match="does not belong here"):
        await store.resume(SessionId("s2"))
    assert moved.read_bytes() == before


async def test_an_id_in_two_projects_is_refused(make, store):
    path = await _stored(store, make, cwd="/one")
    copy = store.path_of(S, "/two")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(path.read_bytes())
    with pytest.raises(LogDamagedError, match="2 projects"):
        await store.resume(S)


UNSUPPORTED = {
    "newer": b'{"type":"session","version":9,"id":"s1","createdAt":1}\n',
    "required_event": b'{"type":"session","version":0,"id":"s1","createdAt":1}\n'
    b'{"type":"vote/cast","seq":0,"time":1,"data":{}}\n',
}


@pytest.mark.parametrize("data", UNSUPPORTED.values(), ids=UNSUPPORTED.keys())
async def test_L09_what_this_build_does_not_know_is_left_alone_with_its_path(store, data):
    path = store.path_of(S, None)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    with pytest.raises(LogUnsupportedError) as caught:
        await store.resume(S)
    assert (str(path) in str(caught.value), path.read_bytes()) == (True, data)


async def test_F01_history_turn_numbers_and_queue_go_on(make, store):
    writer = await store.create(_header())
    make.turn(writer.log, 1)
    make.prompt(writer.log, "later", "m9")
    await writer.close()
    again = await store.resume(S)
    assert (again.log.messages(), highest_turn(again.log), fold_inbox(again.log)) == (
        writer.log.messages(),
        1,
        fold_inbox(writer.log),
    )
    assert [message.id for message in fold_inbox(again.log).next_turn] == ["m9"]
    await again.close()
    assert [event.type for event in again.log][-1] == "session/end-seed"


async def test_F02_a_pickup_is_marked_once_and_reopening_untouched_adds_nothing(make, store):
    path = await _stored(store, make)
    marks = []
    for work in (False, False, True, False):
        writer = await store.resume(S)
        if work:
            make.turn(writer.log, 2)
        await writer.close()
        marks.append(sum(isinstance(event.payload, EndSeed) for event in writer.log))
    assert (marks, path.read_bytes().count(b"session/end-seed")) == ([1, 1, 1, 2], 2)


async def test_F02_the_mark_is_stored_and_told_to_no_observer(make, store):
    await _stored(store, make)
    writer = await store.resume(S)
    heard = []
    writer.log.observe(heard.append)
    await writer.close()
    assert (heard, isinstance(store.inspect(S).log[-1].payload, EndSeed)) == ([], True)


async def test_F03_a_fork_inside_an_open_turn_is_refused_and_one_between_turns_is_not(make, store):
    source = await store.create(_header())
    make.turn(source.log, 1)
    end = len(source.log) - 1
    make.prompt(source.log, "next", "m9")
    make.open_step(source.log, 2)
    outcomes = []
    for boundary in range(len(source.log)):
        try:
            child = await store.fork(source.log, SessionId(f"at-{boundary}"), boundary=boundary)
        except LogError as error:
            outcomes.append(error.error_code)
        else:
            outcomes.append(len(child.log))
            await child.close()
    turn_2 = next(event.seq for event in source.log if event.payload == TurnStart(2))
    expected = [
        "OPEN_TURN" if 1 <= boundary < end or boundary >= turn_2 else boundary + 2
        for boundary in range(len(source.log))
    ]
    assert outcomes == expected
    with pytest.raises(LogError) as caught:
        await store.fork(source.log, SessionId("whole"))
    assert caught.value.error_code == "OPEN_TURN"
    await source.close()


@pytest.mark.parametrize("boundary", [-1, 12, 10**9])
async def test_F03_a_boundary_that_is_no_seq_is_refused(make, store, boundary):
    log = make.log()
    make.turn(log, chunks=3)
    with pytest.raises(LogError) as caught:
        await store.fork(log, SessionId("child"), boundary=boundary)
    assert (caught.value.error_code, store.list()) == ("INVALID_BOUNDARY", ())


async def test_F03_a_taken_child_id_is_found_before_the_boundary_is_judged(make, store):
    await _stored(store, make)
    with pytest.raises(SessionExistsError):
        await store.fork(make.log("other"), S, boundary=99)


async def test_F04_a_child_keeps_lineage_and_depth_and_inherits_no_queue(make, store):
    source = await store.create(_header(cwd="/w", delegation_depth=1))
    make.turn(source.log, 1)
    make.prompt(source.log, "waiting", "m9")
    child = await store.fork(source.log, SessionId("child"), origin="subagent", delegation_depth=2)
    make.prompt(child.log, "own", "m10")
    await child.close()
    await source.close()
    again = await store.resume(SessionId("child"))
    header = again.log.header
    assert dataclasses.replace(header, created_at=0) == SessionHeader(
        SessionId("child"), 0, "/w", S, len(source.log), "subagent", 2
    )
    assert [message.id for message in fold_inbox(again.log, header.seed_length).next_turn] == ["m10"]
    assert again.log.messages() == source.log.messages()
    await again.close()


async def test_a_fork_at_the_last_turn_end_leaves_the_running_turn_behind(make, store):
    log = make.log()
    make.turn(log, 1)
    make.open_step(log, 2)
    child = await store.fork(log, SessionId("child"), boundary=last_turn_end(log))
    assert highest_turn(child.log) == 1
    await child.close()


async def test_salvage_copies_the_good_part_into_a_new_session_and_leaves_the_old_file(make, store):
    path = await _stored(store, make, turns=3)
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"turn":3' in line) + 2
    spoiled = b"".join([*lines[:at], b"garbage\n", *lines[at + 1 :]])
    path.write_bytes(spoiled)
    writer = await store.salvage(S, SessionId("saved"))
    await writer.close()
    assert (path.read_bytes(), writer.log.header.parent_session, highest_turn(writer.log)) == (spoiled, S, 3)
    assert "garbage" not in writer.path.read_text()
    assert (make.types(writer.log)[-2:], "does not read" in writer.damage) == (["turn/end", "session/end-seed"], True)
    assert list(store.inspect(SessionId("saved")).log) == list(writer.log)


async def test_salvage_into_a_taken_id_is_refused(make, store):
    await _stored(store, make)
    with pytest.raises(SessionExistsError):
        await store.salvage(S, S)


async def test_F04_a_child_cut_inside_its_seed_is_refused_untouched_and_salvaged_it_takes_prompts(make, store):
    source = await store.create(_header())
    make.turn(source.log, 1)
    make.prompt(source.log, "waiting", "m9")
    child = await store.fork(source.log, SessionId("child"))
    await child.close()
    await source.close()
    lines = child.path.read_bytes().splitlines(keepends=True)
    torn = b"".join(lines[:6]) + lines[6][:9]
    child.path.write_bytes(torn)
    for open_it in (store.resume, lambda session_id: asyncio.to_thread(store.inspect, session_id)):
        with pytest.raises(LogDamagedError, match=r"line 1: header\.seedLength is 1\d, and 5 events read") as caught:
            await open_it(SessionId("child"))
        assert (caught.value.where, "sessions salvage" in caught.value.fix) == (str(child.path), True)
    saved = await store.salvage(SessionId("child"), SessionId("saved"))
    await saved.close()
    assert child.path.read_bytes() == torn
    again = await store.resume(SessionId("saved"))
    header = again.log.header
    assert (header.parent_session, header.seed_length) == ("child", 5)
    assert len(fold_inbox(again.log, header.seed_length)) == 0
    make.prompt(again.log, "own", "m10")
    assert [message.id for message in fold_inbox(again.log, header.seed_length).next_turn] == ["m10"]
    await again.close()


async def test_F04_a_session_that_is_created_has_no_seed(store):
    with pytest.raises(InvalidEventError, match="3 inherited events"):
        await store.create(_header(parent_session=SessionId("p"), seed_length=3))
    assert store.list() == ()


async def test_a_root_that_cannot_be_written_is_a_named_error(make, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    store = SessionStore(tmp_path / "file" / "root", clock=make.clock())
    with pytest.raises(LogWriteError, match="cannot be opened for writing"):
        await store.create(_header())


async def test_a_log_that_is_a_link_elsewhere_is_not_opened(make, store, tmp_path):
    path = await _stored(store, make)
    other = tmp_path / "elsewhere.jsonl"
    path.rename(other)
    path.symlink_to(other)
    before = other.read_bytes()
    with pytest.raises(LogWriteError):
        await store.resume(S)
    assert (other.read_bytes(), _files(store, "*.lock")) == (before, [])


async def test_every_session_gets_a_check_of_its_own(make, tmp_path):
    store = SessionStore(tmp_path, clock=make.clock(), check=Invariants)
    writers = [await store.create(_header(name)) for name in ("a", "b")]
    for writer in writers:
        make.turn(writer.log)
        with pytest.raises(InvalidEventError, match="starts in"):
            writer.log.append(StepStart(1, 1))
        await writer.close()
    again = await store.resume(SessionId("a"))
    make.turn(again.log, 2)
    await again.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_appended_in_whatever_batches_reads_back_equal(make, tmp_path_factory, data):
    root = tmp_path_factory.mktemp("property")

    async def run():
        store = SessionStore(root, clock=make.clock())
        writer = await store.create(_header())
        for _ in range(data.draw(st.integers(1, 3))):
            for payload in data.draw(st.lists(make.payloads, max_size=5)):
                make.append(writer.log, payload)
            await writer.flush()
        await writer.close()
        if len(writer.log):
            view = store.inspect(S)
            assert (list(view.log)[: len(writer.log)], view.damage) == (list(writer.log), None)
            assert fold_messages(view.log[: len(writer.log)]) == writer.log.messages()

    asyncio.run(run())


@pytest.mark.parametrize("collects", [True, False])
async def test_loading_leaves_the_garbage_collector_as_it_was(make, store, collects):
    path = await _stored(store, make)
    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        store.inspect(S)
        good = gc.isenabled()
        path.write_bytes(b"{}\n")
        with pytest.raises(LogDamagedError):
            store.inspect(S)
        assert (good, gc.isenabled()) == (collects, collects)
    finally:
        (gc.enable if before else gc.disable)()


async def test_reading_leaves_frozen_what_a_host_froze_and_freezes_nothing_itself(make, store):
    await _stored(store, make)
    gc.unfreeze()
    store.inspect(S)
    by_itself = gc.get_freeze_count()
    gc.freeze()
    try:
        store.inspect(S)
        assert (by_itself, gc.get_freeze_count() > 0) == (0, True)
    finally:
        gc.unfreeze()
