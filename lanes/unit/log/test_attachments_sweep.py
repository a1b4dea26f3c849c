"""A picture is removed only when it is old and every log was read and none names it (B22)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.log import attachments_sweep
from harness.log.attachments import FOLDER_NAME, AttachmentStore
from harness.log.attachments_objects import ObjectFiles
from harness.log.attachments_sweep import GRACE_MS, LEAST_GRACE_MS, Swept, sweep
from harness.log.events import SessionHeader, ToolResult
from harness.log.inbox import Inbox, insert_payload
from harness.log.store import SessionStore
from harness.model.messages import (
    AttachmentRef,
    CallId,
    ImageBlock,
    Message,
    MessageId,
    SessionId,
    ToolResultBlock,
    ToolSource,
    UserSource,
)

NOW = 10_000_000_000
OLD_S = (NOW - GRACE_MS) / 1000 - 1


@pytest.fixture
def files(tmp_path: Path) -> ObjectFiles:
    return AttachmentStore.beside(tmp_path).files


def old_object(files: ObjectFiles, data: bytes) -> str:
    digest = files.put(data)
    os.utime(files.path_of(digest), (OLD_S, OLD_S))
    return digest


def names_of(files: ObjectFiles) -> set[str]:
    return {found.name for found in files.list()}


def image(digest: str) -> ImageBlock:
    return ImageBlock(AttachmentRef(f"sha256:{digest}", "image/png", 1, 1, 1))


def message(digest: str) -> Message:
    return Message(MessageId("m1"), "user", (image(digest),), UserSource())


async def session(root: Path, digest: str, session_id: str = "s1", **header: str) -> Path:
    store = SessionStore(root, clock=lambda: 1)
    writer = await store.create(SessionHeader(SessionId(session_id), 1, **header))  # type: ignore[arg-type] # by name
    writer.log.append(insert_payload(Inbox(), message(digest), "next-turn"))
    await writer.close()
    return writer.path


async def test_B22_an_old_picture_that_no_log_names_is_removed_and_others_stay(
    tmp_path: Path, files: ObjectFiles
) -> None:
    orphan, named, young = old_object(files, b"orphan"), old_object(files, b"named"), files.put(b"young")
    os.utime(files.path_of(young), (OLD_S + 2, OLD_S + 2))
    await session(tmp_path, named)
    swept = await sweep(tmp_path, clock=lambda: NOW)
    assert (swept, names_of(files)) == (Swept((orphan,), 2, ()), {named, young})


async def test_B22_the_log_of_any_project_keeps_its_pictures(tmp_path: Path, files: ObjectFiles) -> None:
    digests = [old_object(files, data) for data in (b"1", b"2")]
    await session(tmp_path, digests[0], "s1", cwd="/a")
    await session(tmp_path, digests[1], "s2", cwd="/b")
    assert await sweep(tmp_path, clock=lambda: NOW) == Swept((), 2, ())


async def test_B22_a_picture_in_a_tool_result_is_named(tmp_path: Path, files: ObjectFiles, make) -> None:
    digest = old_object(files, b"shot")
    writer = await SessionStore(tmp_path, clock=lambda: 1).create(SessionHeader(SessionId("s1"), 1))
    call = make.call("c1")
    make.open_step(writer.log)
    writer.log.append(make.header())
    writer.log.append(make.assistant(call))
    writer.log.append(make.started(call))
    block = ToolResultBlock(CallId("c1"), (image(digest),))
    writer.log.append(
        ToolResult(1, 1, Message(MessageId("r1"), "user", (block,), ToolSource(CallId("c1"))), None, None)
    )
    await writer.close()
    assert await sweep(tmp_path, clock=lambda: NOW) == Swept((), 1, ())


async def test_B22_a_log_being_written_keeps_its_pictures(tmp_path: Path, files: ObjectFiles) -> None:
    digest = old_object(files, b"live")
    writer = await SessionStore(tmp_path, clock=lambda: 1).create(SessionHeader(SessionId("s1"), 1))
    writer.log.append(insert_payload(Inbox(), message(digest), "next-turn"))
    await writer.flush()
    assert await sweep(tmp_path, clock=lambda: NOW) == Swept((), 1, ())
    await writer.close()


@pytest.mark.parametrize("kind", ["no-header", "newer-version", "damaged-history", "moved", "unreadable"])
async def test_B22_one_log_that_cannot_be_read_blocks_everything(
    tmp_path: Path, files: ObjectFiles, kind: str, make
) -> None:
    orphan = old_object(files, b"orphan")
    path = await session(tmp_path, "0" * 64)
    good = path.read_bytes()
    match kind:
        case "no-header":
            path.write_bytes(b"hello\n")
        case "newer-version":
            header, _, rest = good.partition(b"\n")
            path.write_bytes(json.dumps({**json.loads(header), "v": 99, "version": 99}).encode() + b"\n" + rest)
        case "damaged-history":
            path.write_bytes(good + b'broken\n{"type":"turn/end"}\n')
        case "moved":
            path.parent.rename(path.parent.with_name("elsewhere"))
            path = path.parent.with_name("elsewhere") / path.name
        case "unreadable":
            path.unlink()
            path.mkdir()
    swept = await sweep(tmp_path, clock=lambda: NOW)
    blocking = [reason.startswith(f"{path}: ") for reason in swept.blocked_by]
    assert (swept.removed, swept.kept, blocking, names_of(files)) == ((), 1, [True], {orphan})
    _set_right(path, good)
    assert (await sweep(tmp_path, clock=lambda: NOW)).removed == (orphan,)


def _set_right(path: Path, good: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    if path.parent.name == "elsewhere":
        path.parent.rename(path.parent.with_name("s1"))
        path = path.parent.with_name("s1") / path.name
    path.write_bytes(good)


async def test_B22_a_torn_last_record_still_keeps_the_picture_it_names(tmp_path: Path, files: ObjectFiles) -> None:
    digest = old_object(files, b"torn")
    path = await session(tmp_path, "0" * 64)
    with path.open("ab") as file:
        file.write(f'{{"seq":1,"type":"user/message","attachmentId":"sha256:{digest}'.encode())
    assert await sweep(tmp_path, clock=lambda: NOW) == Swept((), 1, ())


async def test_B22_a_reference_spelled_with_escapes_is_a_reference(tmp_path: Path, files: ObjectFiles) -> None:
    digest = old_object(files, b"escaped")
    path = await session(tmp_path, digest)
    path.write_bytes(path.read_bytes().replace(b"sha256:", rb"sha256\u003a"))
    assert await sweep(tmp_path, clock=lambda: NOW) == Swept((), 1, ())


async def test_B22_a_picture_stored_again_during_a_sweep_stays(
    tmp_path: Path, files: ObjectFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The logs were read before the new message; the object's new age is what saves it."""
    digest = old_object(files, b"again")
    read = attachments_sweep._named_in_logs

    def read_then_store(sessions: SessionStore) -> tuple[frozenset[str], tuple[str, ...]]:
        found = read(sessions)
        ObjectFiles(files.root).put(b"again")
        return found

    monkeypatch.setattr(attachments_sweep, "_named_in_logs", read_then_store)
    assert (await sweep(tmp_path, clock=lambda: NOW), names_of(files)) == (Swept((), 1, ()), {digest})


async def test_B22_what_broken_writes_left_goes_whatever_the_logs_say(tmp_path: Path, files: ObjectFiles) -> None:
    (await session(tmp_path, "0" * 64)).write_bytes(b"hello\n")
    staging = files.root / "staging"
    staging.mkdir(parents=True)
    for name, time_s in (("1-0", OLD_S), ("2-0", OLD_S + 2)):
        (staging / name).write_bytes(b"half")
        os.utime(staging / name, (time_s, time_s))
    await sweep(tmp_path, clock=lambda: NOW)
    assert [path.name for path in staging.iterdir()] == ["2-0"]


async def test_B22_files_that_are_no_objects_are_left_alone(tmp_path: Path, files: ObjectFiles) -> None:
    digest = old_object(files, b"orphan")
    strange = [files.path_of(digest).with_name("note.txt"), files.root / "objects" / "zz" / digest]
    for path in strange:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"mine")
        os.utime(path, (OLD_S, OLD_S))
    swept = await sweep(tmp_path, clock=lambda: NOW)
    assert (swept.removed, [path.exists() for path in strange]) == ((digest,), [True, True])


async def test_B22_a_root_without_pictures_stays_as_it_is(tmp_path: Path) -> None:
    found = await sweep(tmp_path / "none", clock=lambda: NOW)
    assert (found, (tmp_path / "none").exists()) == (Swept((), 0, ()), False)


async def test_B22_a_grace_period_shorter_than_a_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        await sweep(tmp_path, clock=lambda: NOW, grace_ms=LEAST_GRACE_MS - 1)
    assert not (tmp_path / FOLDER_NAME).exists()
