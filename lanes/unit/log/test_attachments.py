"""Pictures are kept by content: whole, durable, and before any message names them."""

from __future__ import annotations

import asyncio
import errno
import inspect
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from harness.errors import AttachmentError, HarnessError, UsageError
from harness.log import attachments_objects
from harness.log.attachments import FOLDER_NAME, AttachmentStore
from harness.log.attachments_objects import ObjectFiles
from harness.log.attachments_rules import Limits, Upload, attachment_id_of
from harness.log.disk import Disk
from harness.log.store import SessionStore
from harness.model.messages import AttachmentRef, SessionId


def png(shade: int = 0, size: tuple[int, int] = (3, 2)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, (shade, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def upload(shade: int = 0, name: str | None = None) -> Upload:
    return Upload(png(shade), "image/png", name)


def files_under(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != "lock")


def place(data: bytes) -> str:
    digest = attachment_id_of(data).removeprefix("sha256:")
    return f"objects/{digest[:2]}/{digest}"


async def code_of(awaited: object) -> str:
    assert inspect.isawaitable(awaited)
    try:
        await awaited
    except HarnessError as error:
        return error.error_code
    return ""


class FaultyDisk(Disk):
    """A disk that tells what it was asked and can refuse one call."""

    def __init__(self, refuse: str = "", error: int = errno.ENOSPC) -> None:
        self.calls: list[str] = []
        self._refuse = refuse
        self._error = error

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if f"{name.split()[0]}-{sum(call.split()[0] == name.split()[0] for call in self.calls)}" == self._refuse:
            raise OSError(self._error, os.strerror(self._error))

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._called("write")
        return super().write(fd, data[:50])

    def sync(self, fd: int) -> None:
        self._called(f"sync {Path(f'/proc/self/fd/{fd}').readlink().name}" if sys.platform == "linux" else "sync")
        super().sync(fd)

    def link(self, source: Path, target: Path) -> None:
        self._called("link")
        super().link(source, target)


@pytest.fixture
def store(tmp_path: Path) -> AttachmentStore:
    return AttachmentStore(tmp_path / "pictures")


# what is kept --------------------------------------------------------------------------------------------------------


async def test_A01_the_same_bytes_are_one_object_under_one_id(store: AttachmentStore) -> None:
    first = await store.admit([upload(1, "a.png"), upload(1, "dir/b.png")])
    second = await AttachmentStore(store.files.root).admit([upload(1), upload(2)])
    data = png(1)
    assert (first, second[0], files_under(store.files.root)) == (
        (
            AttachmentRef(attachment_id_of(data), "image/png", len(data), 3, 2, "a.png"),
            AttachmentRef(attachment_id_of(data), "image/png", len(data), 3, 2, "b.png"),
        ),
        AttachmentRef(attachment_id_of(data), "image/png", len(data), 3, 2),
        sorted([place(data), place(png(2))]),
    )


@pytest.mark.parametrize("stored", [b"", b"x", png(1)[:-1], png(1)[:-1] + b"\0"], ids=["empty", "other", "cut", "bit"])
async def test_A01_an_object_that_is_there_is_not_trusted_before_it_was_read(
    store: AttachmentStore, stored: bytes
) -> None:
    target = store.files.root / place(png(1))
    target.parent.mkdir(parents=True)
    target.write_bytes(stored)
    assert (await code_of(store.admit([upload(1)])), target.read_bytes()) == ("ATTACHMENT_CORRUPT", stored)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
async def test_A01_an_object_that_is_no_plain_file_is_damaged(store: AttachmentStore, kind: str) -> None:
    target = store.files.root / place(png(1))
    target.parent.mkdir(parents=True)
    elsewhere = store.files.root / "elsewhere"
    elsewhere.write_bytes(png(1))
    {"link": lambda: target.symlink_to(elsewhere), "folder": target.mkdir, "pipe": lambda: os.mkfifo(target)}[kind]()
    (reference,) = await AttachmentStore(store.files.root.parent / "other").admit([upload(1)])
    assert (await code_of(store.admit([upload(1)])), await code_of(store.read(reference))) == (
        "ATTACHMENT_CORRUPT",
        "ATTACHMENT_CORRUPT",
    )


async def test_files_and_folders_are_for_their_owner_only(store: AttachmentStore) -> None:
    await store.admit([upload(1)])
    modes = {oct(path.stat().st_mode & 0o777) for path in store.files.root.rglob("*") if path.is_file()}
    folders = {oct(path.stat().st_mode & 0o777) for path in store.files.root.rglob("*") if path.is_dir()}
    assert (modes, folders, oct(store.files.root.stat().st_mode & 0o777)) == ({"0o600"}, {"0o700"}, "0o700")


@pytest.mark.skipif(sys.platform != "linux", reason="names of open files are read from /proc")
async def test_an_object_is_durable_before_it_has_its_name_and_its_folders_after(tmp_path: Path) -> None:
    """Also the folders that were there: seeing a folder does not prove that its entry reached the disk."""
    disk = FaultyDisk()
    root = tmp_path / "known" / "pictures"
    await AttachmentStore(root).admit([upload(1), upload(2)])
    store = AttachmentStore(root, disk=disk)
    data = png(3)
    bucket = attachment_id_of(data).removeprefix("sha256:")[:2]
    (root / "objects" / bucket).mkdir(mode=0o700, exist_ok=True)
    await store.admit([upload(3)])
    calls = [call for call in disk.calls if call != "write"]
    assert (calls[0].startswith(f"sync {os.getpid()}-"), calls[1:]) == (
        True,
        ["link", f"sync {bucket}", "sync objects", "sync pictures", "sync known"],
    )
    disk.calls.clear()
    await store.admit([upload(3)])
    digest = attachment_id_of(data).removeprefix("sha256:")
    assert disk.calls == [f"sync {digest}", f"sync {bucket}", "sync objects", "sync pictures", "sync known"]


async def test_two_processes_that_store_the_same_bytes_at_once_share_one_object(tmp_path: Path) -> None:
    class Rival(Disk):
        def link(self, source: Path, target: Path) -> None:
            ObjectFiles(tmp_path / "pictures").put(png(1))
            super().link(source, target)

    store = AttachmentStore(tmp_path / "pictures", disk=Rival())
    (reference,) = await store.admit([upload(1)])
    assert (await store.read(reference), files_under(tmp_path / "pictures")) == (png(1), [place(png(1))])


async def test_what_a_killed_writer_left_in_the_staging_folder_is_in_nobody_s_way(store: AttachmentStore) -> None:
    staging = store.files.root / "staging"
    staging.mkdir(parents=True)
    (staging / f"{os.getpid()}-0").write_bytes(b"half")
    (reference,) = await store.admit([upload(1)])
    assert (await store.read(reference), (staging / f"{os.getpid()}-0").read_bytes()) == (png(1), b"half")


async def test_storing_and_decoding_happen_off_the_event_loop(tmp_path: Path) -> None:
    threads: set[int] = set()

    class Watched(Disk):
        def sync(self, fd: int) -> None:
            threads.add(threading.get_ident())
            super().sync(fd)

    await AttachmentStore(tmp_path / "pictures", disk=Watched()).admit([upload(1)])
    assert (len(threads), threading.get_ident() in threads) == (1, False)


# batches -------------------------------------------------------------------------------------------------------------

BAD = {
    "no-picture": (Upload(b"hello", "image/png"), "INVALID_IMAGE"),
    "cut": (Upload(png(9, (20, 20))[:-30], "image/png"), "INVALID_IMAGE"),
    "another-type": (Upload(png(9), "image/gif"), "IMAGE_TYPE_MISMATCH"),
    "type-not-taken": (Upload(png(9), "image/svg+xml"), "UNSUPPORTED_IMAGE_TYPE"),
    "too-large": (Upload(png(9) + bytes(1000), "image/png"), "IMAGE_TOO_LARGE"),
    "too-many-pixels": (Upload(png(9, (21, 20)), "image/png"), "IMAGE_TOO_MANY_PIXELS"),
}


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("kind", BAD)
async def test_A02_one_bad_picture_in_a_batch_and_nothing_is_written(tmp_path: Path, kind: str, position: int) -> None:
    root = tmp_path / "pictures"
    bad, code = BAD[kind]
    batch = [upload(1), upload(2)]
    batch.insert(position, bad)
    limits = Limits(max_pixels=400, max_image_bytes=1000)
    found = await code_of(AttachmentStore(root, limits=limits).admit(batch))
    assert (found, root.exists()) == (code, False)
    assert len(await AttachmentStore(root, limits=limits).admit([upload(1), upload(2)])) == 2


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        pytest.param(Limits(max_images=2), "TOO_MANY_IMAGES", id="count"),
        pytest.param(Limits(max_batch_bytes=3 * len(png()) - 1), "IMAGES_TOO_LARGE", id="bytes"),
    ],
)
async def test_A02_a_batch_too_big_and_nothing_is_written(tmp_path: Path, limits: Limits, code: str) -> None:
    root = tmp_path / "pictures"
    found = await code_of(AttachmentStore(root, limits=limits).admit([upload(1), upload(2), upload(3)]))
    assert (found, root.exists()) == (code, False)


async def test_A02_without_the_image_package_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reference,) = await AttachmentStore(tmp_path / "pictures").admit([upload(1)])
    data, offered = png(1), upload(2)
    monkeypatch.setitem(sys.modules, "PIL", None)
    store = AttachmentStore(tmp_path / "pictures")
    with pytest.raises(UsageError) as caught:
        await store.admit([offered])
    assert (caught.value.error_code, "five-lanes[images]" in caught.value.fix, store.accepted_types) == (
        "UNSUPPORTED_IMAGE_TYPE",
        True,
        frozenset(),
    )
    assert (await store.read(reference), files_under(tmp_path / "pictures")) == (data, [place(data)])


async def test_an_empty_batch_is_no_error_and_writes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "pictures"
    assert (await AttachmentStore(root).admit([]), root.exists()) == ((), False)


@pytest.mark.parametrize("refuse", ["write-1", "write-2", "sync-1", "sync-2", "sync-5", "link-1"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
async def test_a_disk_that_refuses_gives_no_reference_and_the_next_try_works(
    tmp_path: Path, refuse: str, error: int
) -> None:
    root = tmp_path / "pictures"
    with pytest.raises(AttachmentError) as caught:
        await AttachmentStore(root, disk=FaultyDisk(refuse, error)).admit([upload(1)])
    assert (caught.value.error_code, os.strerror(error) in caught.value.what) == ("ATTACHMENT_WRITE_FAILED", True)
    assert [name for name in files_under(root) if name.startswith("staging")] == []
    (reference,) = await AttachmentStore(root).admit([upload(1)])
    assert await AttachmentStore(root).read(reference) == png(1)


async def test_a_disk_that_refuses_the_second_picture_gives_no_reference_at_all(tmp_path: Path) -> None:
    store = AttachmentStore(tmp_path / "pictures", disk=FaultyDisk("link-2"))
    queued: list[object] = []
    code = await code_of(store.admit_and_queue([upload(1), upload(2)], queued.append, is_cancelled=lambda: False))
    assert (code, queued, files_under(tmp_path / "pictures")) == ("ATTACHMENT_WRITE_FAILED", [], [place(png(1))])


# reading -------------------------------------------------------------------------------------------------------------


async def test_A03_a_picture_reads_back_as_it_was_given(store: AttachmentStore) -> None:
    references = await store.admit([upload(1), Upload(png(2, (30, 1)), "image/png", "b.png")])
    assert [await store.read(reference) for reference in references] == [png(1), png(2, (30, 1))]


async def test_A03_any_flipped_byte_is_noticed(store: AttachmentStore) -> None:
    (reference,) = await store.admit([upload(1)])
    target = store.files.root / place(png(1))
    unnoticed = []
    for at in range(len(png(1))):
        damaged = bytearray(png(1))
        damaged[at] ^= 0x10
        target.write_bytes(damaged)
        if await code_of(store.read(reference)) != "ATTACHMENT_CORRUPT":
            unnoticed.append(at)
    assert unnoticed == []


async def test_A03_a_missing_object_is_told_apart_from_a_damaged_one(store: AttachmentStore) -> None:
    (reference,) = await store.admit([upload(1)])
    (store.files.root / place(png(1))).unlink()
    assert await code_of(store.read(reference)) == "ATTACHMENT_NOT_FOUND"


async def test_A03_a_missing_picture_says_how_it_is_mended_and_is_mended_by_sending_it_again(
    store: AttachmentStore,
) -> None:
    (reference,) = await store.admit([upload(1)])
    path = store.files.root / place(png(1))
    path.unlink()
    with pytest.raises(AttachmentError, match="send the same picture again") as caught:
        await store.read(reference)
    error = caught.value
    assert (reference.attachment_id in error.where, str(path) in error.fix, str(path) in error.what) == (
        True,
        True,
        False,
    )
    await store.admit([upload(1)])
    assert await store.read(reference) == png(1)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"width": 2, "height": 3}, id="sides-exchanged"),
        pytest.param({"width": 4}, id="width"),
        pytest.param({"height": 1}, id="height"),
        pytest.param({"bytes": 1}, id="bytes"),
        pytest.param({"media_type": "image/gif"}, id="type"),
        pytest.param({"attachment_id": "sha256:00"}, id="id"),
    ],
)
async def test_A03_a_reference_that_does_not_fit_its_object_is_told_apart(
    store: AttachmentStore, fields: dict[str, object]
) -> None:
    data = png(1)
    (stored,) = await store.admit([upload(1)])
    stated = {"attachment_id": stored.attachment_id, "media_type": "image/png", "bytes": len(data)}
    wrong = AttachmentRef(**{**stated, "width": 3, "height": 2, **fields})  # type: ignore[arg-type] # fields by name
    assert (await code_of(store.read(wrong)), await store.read(stored)) == ("INVALID_ATTACHMENT_REF", data)


async def test_A03_an_object_that_is_no_picture_is_not_given_as_one(store: AttachmentStore) -> None:
    store.files.put(b"no picture")
    reference = AttachmentRef(attachment_id_of(b"no picture"), "image/png", 10, 3, 2)
    assert await code_of(store.read(reference)) == "INVALID_ATTACHMENT_REF"


async def test_A03_a_disk_that_does_not_read_is_told_apart(
    store: AttachmentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reference,) = await store.admit([upload(1)])

    def refuse(fd: int, size: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(attachments_objects.os, "read", refuse)
        found = await code_of(ObjectReads(store).read(reference))
    assert (found, await store.read(reference)) == ("ATTACHMENT_READ_FAILED", png(1))


class ObjectReads:
    """A store read without its threads, so that nobody else meets the broken read of a test."""

    def __init__(self, store: AttachmentStore) -> None:
        self._store = store

    async def read(self, reference: AttachmentRef) -> bytes:
        return self._store._read(reference)


async def test_stricter_limits_later_leave_old_pictures_readable(store: AttachmentStore) -> None:
    (reference,) = await store.admit([upload(1)])
    strict = AttachmentStore(store.files.root, limits=Limits(0, 0, 0, 0, 0))
    assert await strict.read(reference) == png(1)


async def test_a_cancelled_read_says_that_it_was_cancelled(store: AttachmentStore) -> None:
    (reference,) = await store.admit([upload(1)])
    reading = asyncio.create_task(store.read(reference))
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shades=st.lists(st.integers(0, 255), max_size=5), names=st.text(max_size=20))
async def test_whatever_is_admitted_reads_back(tmp_path: Path, shades: list[int], names: str) -> None:
    store = AttachmentStore(tmp_path / "pictures")
    references = await store.admit([upload(shade, names) for shade in shades])
    assert [await store.read(reference) for reference in references] == [png(shade) for shade in shades]


# before a message names it -------------------------------------------------------------------------------------------


async def test_A04_a_message_is_queued_only_behind_its_durable_pictures(tmp_path: Path) -> None:
    order: list[str] = []

    class Watched(Disk):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            order.append("sync")

    store = AttachmentStore(tmp_path / "pictures", disk=Watched())

    def queue(references: tuple[AttachmentRef, ...]) -> int:
        order.append("queue")
        return len(references)

    queued = await store.admit_and_queue([upload(1), upload(2)], queue, is_cancelled=lambda: False)
    assert (queued, order[-1], order.count("queue"), order.count("sync") > 4) == (2, "queue", 1, True)


async def test_A04_a_cancel_while_pictures_are_stored_queues_nothing(store: AttachmentStore) -> None:
    queued: list[object] = []
    found = await store.admit_and_queue([upload(1)], queued.append, is_cancelled=lambda: True)
    assert (found, queued, files_under(store.files.root)) == (None, [], [place(png(1))])


# references that come back -------------------------------------------------------------------------------------------


async def test_a_reference_named_again_is_checked_and_its_object_young_again(store: AttachmentStore) -> None:
    references = await store.admit([upload(1), upload(2)])
    target = store.files.root / place(png(1))
    os.utime(target, (1, 1))
    await store.keep(references)
    assert target.stat().st_mtime > 1
    target.unlink()
    assert await code_of(store.keep(references)) == "ATTACHMENT_NOT_FOUND"


async def test_a_picture_stored_again_is_young_again(store: AttachmentStore) -> None:
    await store.admit([upload(1)])
    target = store.files.root / place(png(1))
    os.utime(target, (1, 1))
    await store.admit([upload(1)])
    assert target.stat().st_mtime > 1


def test_the_store_of_a_session_root_stands_where_no_project_can(tmp_path: Path) -> None:
    store = AttachmentStore.beside(tmp_path)
    store.files.put(png(1))
    sessions = SessionStore(tmp_path, clock=lambda: 1)
    assert (store.files.root, sessions.list(), code_of_find(sessions)) == (
        tmp_path / FOLDER_NAME,
        (),
        "SESSION_NOT_FOUND",
    )


def code_of_find(sessions: SessionStore) -> str:
    find: Callable[[SessionId], Path] = sessions.find
    try:
        find(SessionId("s1"))
    except HarnessError as error:
        return error.error_code
    return ""
