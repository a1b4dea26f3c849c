"""Places of a session root that nobody can look into count as there and as not readable (P-12, P-14, B22)."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket

import pytest

from harness.errors import LogError, LogReadError, SessionExistsError, SessionNotFoundError
from harness.log.attachments import AttachmentStore
from harness.log.attachments_sweep import GRACE_MS, sweep
from harness.log.events import SessionHeader
from harness.log.inbox import Inbox, insert_payload
from harness.log.store import SessionStore
from harness.model.messages import AttachmentRef, ImageBlock, Message, MessageId, SessionId, UserSource

S = SessionId("s1")
GHOST = SessionId("ghost")
NOW = 10_000_000_000
CAPABILITIES_V3 = 0x20080522
OVERRIDES_MODES = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, bits 1 and 2 of the first word


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


@pytest.fixture
def held_to_modes():
    """This thread, and those it starts, get what a file's mode gives its owner, even as the system's root."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = _CapHeader(CAPABILITIES_V3, 0)
    words = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, for the low and the high capabilities
    assert libc.capget(ctypes.byref(header), words) == 0
    before = words[0]
    words[0] = before & ~OVERRIDES_MODES
    assert libc.capset(ctypes.byref(header), words) == 0
    yield
    words[0] = before
    assert libc.capset(ctypes.byref(header), words) == 0


@pytest.fixture
def closed(held_to_modes):
    """Take every right to a path away until the test ends."""
    paths = []

    def close(path):
        paths.append((path, path.stat().st_mode))
        path.chmod(0)

    yield close
    for path, mode in reversed(paths):
        path.chmod(mode)


@pytest.fixture
def store(make, tmp_path):
    return SessionStore(tmp_path / "root", clock=make.clock())


def _header(session_id="s1", **fields):
    return SessionHeader(SessionId(session_id), 1, **fields)


async def _stored(store, make, session_id="s1", **fields):
    writer = await store.create(_header(session_id, **fields))
    make.turn(writer.log, 1)
    await writer.close()
    return writer.path


def _close_session(path, close, root):
    close(path.parent)


def _close_project(path, close, root):
    close(path.parent.parent)


def _close_root(path, close, root):
    close(root)


def _loop_session(path, close, root):
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(path.parent.name)


def _dead_session(path, close, root):
    path.parent.rename(root.parent / "away")
    path.parent.symlink_to(root / "nowhere")


def _dead_project(path, close, root):
    path.parent.parent.rename(root.parent / "away")
    path.parent.parent.symlink_to(root / "nowhere")


DENIED = "Permission denied"
HIDDEN = {
    "session_closed": (_close_session, "session.jsonl", DENIED),
    "project_closed": (_close_project, "one", DENIED),
    "root_closed": (_close_root, "root", DENIED),
    "session_loops": (_loop_session, "s1", "Too many levels of symbolic links"),
    "session_lost": (_dead_session, "s1", "it is a link to something that is not there"),
    "project_lost": (_dead_project, "one", "it is a link to something that is not there"),
}
BLOCKING = [name for name in HIDDEN if name != "root_closed"]  # the pictures are behind that door themselves


@pytest.mark.parametrize(("hide", "name", "problem"), HIDDEN.values(), ids=HIDDEN.keys())
async def test_P14_a_session_nobody_can_look_at_is_listed_with_its_reason_and_not_said_to_be_missing(
    make, store, closed, hide, name, problem
):
    path = await _stored(store, make, cwd="/one")
    await _stored(store, make, "good", cwd="/two")
    hide(path, closed, store.root)
    listed = [(each.path.name, each.problem) for each in store.list() if each.header is None]
    assert listed == [(name, problem)]
    assert [each.header.id for each in store.list() if each.header is not None] == ([] if name == "root" else ["good"])
    with pytest.raises(LogError) as caught:
        store.inspect(S)
    assert (caught.value.error_code, bool(caught.value.fix)) == ("LOG_READ_FAILED", True)
    with pytest.raises(LogError) as caught:
        await store.resume(S)
    assert caught.value.error_code in ("LOG_READ_FAILED", "LOG_WRITE_FAILED")


@pytest.mark.parametrize("hide", [hide for hide, _, _ in HIDDEN.values()], ids=HIDDEN.keys())
async def test_P12_an_id_that_may_stand_where_nobody_can_look_is_not_given_away(make, store, closed, hide):
    path = await _stored(store, make, cwd="/one")
    source = make.log("source")
    hide(path, closed, store.root)
    for attempt in (store.create(_header(cwd="/two")), store.fork(source, S)):
        with pytest.raises((SessionExistsError, LogReadError)):
            await attempt


async def test_P14_a_session_is_found_beside_a_folder_nobody_can_look_into(make, store, closed):
    path = await _stored(store, make, cwd="/one")
    await _stored(store, make, "good", cwd="/two")
    closed(path.parent.parent)
    assert store.inspect(SessionId("good")).header.id == "good"
    with pytest.raises(LogReadError, match="may stand here, and nobody can tell: Permission denied"):
        store.inspect(GHOST)


async def test_P14_a_folder_no_project_is_called_like_keeps_no_id_back(make, store, closed):
    """A disk that is a session root has its own lost+found, for the system alone."""
    await _stored(store, make)
    (store.root / "lost+found").mkdir()
    closed(store.root / "lost+found")
    with pytest.raises(SessionNotFoundError):
        store.inspect(GHOST)
    await _stored(store, make, "new")


@pytest.mark.parametrize(("hide", "problem"), [(HIDDEN[name][0], HIDDEN[name][2]) for name in BLOCKING], ids=BLOCKING)
async def test_B22_a_log_nobody_can_look_at_blocks_the_sweep(store, closed, hide, problem):
    files = AttachmentStore.beside(store.root).files
    digest = files.put(b"a picture")
    old_s = (NOW - GRACE_MS) / 1000 - 1
    os.utime(files.path_of(digest), (old_s, old_s))
    writer = await store.create(_header(cwd="/one"))
    picture = ImageBlock(AttachmentRef(f"sha256:{digest}", "image/png", 9, 1, 1))
    message = Message(MessageId("m1"), "user", (picture,), UserSource())
    writer.log.append(insert_payload(Inbox(), message, "next-turn"))
    await writer.close()
    hide(writer.path, closed, store.root)
    swept = await sweep(store.root, clock=lambda: NOW)
    assert (swept.removed, swept.kept, len(swept.blocked_by)) == ((), 1, 1)
    assert swept.blocked_by[0].endswith(f": {problem}")


def _socket(path):
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(path.parent, os.O_PATH)
        try:
            listener.bind(f"/proc/self/fd/{here}/{path.name}")  # a whole path may be too long for a socket
        finally:
            os.close(here)


NO_FILES = {
    "pipe": (os.mkfifo, "it is a pipe, a socket or a device"),
    "socket": (_socket, "it is a pipe, a socket or a device"),
    "folder": (os.mkdir, "it is a folder"),
    "dead_link": (lambda path: path.symlink_to("nowhere"), "it is a link to something that is not there"),
}


@pytest.mark.parametrize(("put", "problem"), NO_FILES.values(), ids=NO_FILES.keys())
async def test_P14_what_is_no_file_is_named_at_once_and_nothing_waits_for_it(make, store, put, problem):
    path = await _stored(store, make)
    path.unlink()
    put(path)
    assert [(each.path, each.problem) for each in store.list()] == [(path, problem)]
    for read in (asyncio.to_thread(store.inspect, S), store.salvage(S, SessionId("saved"))):
        with pytest.raises(LogReadError) as caught:
            await read
        assert (caught.value.where, problem in caught.value.what, bool(caught.value.fix)) == (str(path), True, True)
    with pytest.raises(LogError, match=problem):
        await store.resume(S)
    swept = await sweep(store.root, clock=lambda: NOW)
    assert swept.removed == ()


async def test_a_log_behind_a_link_is_read_and_its_resume_says_that_it_is_a_link_and_what_to_do(make, store, tmp_path):
    path = await _stored(store, make)
    path.rename(tmp_path / "elsewhere.jsonl")
    path.symlink_to(tmp_path / "elsewhere.jsonl")
    assert store.inspect(S).header.id == "s1"
    with pytest.raises(LogError, match="it is a link and no file of its own") as caught:
        await store.resume(S)
    assert caught.value.fix.startswith("put the file itself where the link stands")


async def test_a_log_without_rights_is_refused_with_its_path_and_a_way_to_mend_it(make, store, closed):
    path = await _stored(store, make)
    closed(path)
    assert [(each.path, each.problem) for each in store.list()] == [(path, DENIED)]
    with pytest.raises(LogReadError, match="cannot be read: Permission denied") as caught:
        store.inspect(S)
    assert (caught.value.where, "owner and mode" in caught.value.fix) == (str(path), True)
