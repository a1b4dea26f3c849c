"""The pictures of conversations, kept by content: logs hold references, this store the bytes.

Room: I/O; assemble makes the store, surfaces admit through it, the provider's shell is handed its read. All blocking
work, decoding included, happens off the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from harness.errors import AttachmentError
from harness.log.attachments_headers import ImageHeader, read_header
from harness.log.attachments_images import accepted_types, check_picture
from harness.log.attachments_objects import ObjectFiles
from harness.log.attachments_rules import (
    Limits,
    Upload,
    attachment_id_of,
    check_batch,
    check_reference,
    display_name,
    reference_refused,
)
from harness.log.disk import Disk
from harness.model.messages import AttachmentRef

FOLDER_NAME = ".attachments"  # no project folder of a session root begins with a dot

_T = TypeVar("_T")


class AttachmentStore:
    """The pictures of one session root.

    Shape: admit gives references only to what is durable. One store for each root and process, or several: the files
    are the only state.
    Limits: see Limits; they are looked at when a picture comes in and never again.
    Raises: UsageError for pictures that are not taken, AttachmentError for what a disk refused or damaged. A cancelled
    call raises the cancellation and nothing else; what it had begun to write is finished behind its back.
    """

    def __init__(self, root: Path, *, limits: Limits | None = None, disk: Disk | None = None) -> None:
        self.limits = limits if limits is not None else Limits()
        self.files = ObjectFiles(root, disk=disk)
        self.accepted_types = accepted_types()

    @classmethod
    def beside(cls, session_root: Path) -> AttachmentStore:
        """The store of the sessions under that root."""
        return cls(session_root / FOLDER_NAME)

    async def admit(self, uploads: Sequence[Upload]) -> tuple[AttachmentRef, ...]:
        """Check a whole batch, then keep it, and give its references in order; all are durable then.

        Raises: UsageError when any picture is not taken, and nothing was written; AttachmentError
        [ATTACHMENT_WRITE_FAILED] or [ATTACHMENT_CORRUPT] when the disk refused, and objects may be left that nobody
        names.
        """
        return await asyncio.to_thread(self._admit, tuple(uploads))

    async def admit_and_queue(
        self,
        uploads: Sequence[Upload],
        queue: Callable[[tuple[AttachmentRef, ...]], _T],
        *,
        is_cancelled: Callable[[], bool],
    ) -> _T | None:
        """Keep a batch and queue the message that names it, in this order; None when cancelled before that.

        Shape: queue is a plain function, so that nothing can come between the last look at the cancel and the message.
        Raises: as admit, and then nothing was queued; and what queue raises.
        """
        references = await self.admit(uploads)
        if is_cancelled():
            return None
        return queue(references)

    async def keep(self, references: Sequence[AttachmentRef]) -> None:
        """Check references that came from elsewhere before a message may name them again; each is durable then.

        Raises: as read.
        """
        await asyncio.to_thread(self._keep, tuple(references))

    async def read(self, reference: AttachmentRef) -> bytes:
        """The picture's bytes, checked against its id and against every field of the reference.

        Raises: AttachmentError [INVALID_ATTACHMENT_REF], [ATTACHMENT_NOT_FOUND], [ATTACHMENT_CORRUPT],
        [ATTACHMENT_READ_FAILED].
        """
        return await asyncio.to_thread(self._read, reference)

    def _admit(self, uploads: tuple[Upload, ...]) -> tuple[AttachmentRef, ...]:
        check_batch(uploads, self.limits, self.accepted_types)
        headers = [check_picture(position, upload, self.limits) for position, upload in enumerate(uploads)]
        return tuple(self._put(upload, header) for upload, header in zip(uploads, headers, strict=True))

    def _put(self, upload: Upload, header: ImageHeader) -> AttachmentRef:
        try:
            self.files.put(upload.data)
        except OSError as error:
            raise AttachmentError(
                f"the picture could not be stored: {error.strerror or error}",
                where=str(self.files.root),
                fix="free space, or look at the owner and mode of the folder; the message was not queued",
                code="ATTACHMENT_WRITE_FAILED",
            ) from error
        return AttachmentRef(
            attachment_id_of(upload.data),
            header.media_type,
            len(upload.data),
            header.width,
            header.height,
            display_name(upload.name),
        )

    def _keep(self, references: tuple[AttachmentRef, ...]) -> None:
        for reference in references:
            self._read(reference)
        for reference in references:
            digest = check_reference(reference)
            try:
                self.files.keep(digest)
            except OSError as error:
                raise _read_failed(reference, error, self.files.path_of(digest)) from error

    def _read(self, reference: AttachmentRef) -> bytes:
        digest = check_reference(reference)
        try:
            data = self.files.read(digest)
        except OSError as error:
            raise _read_failed(reference, error, self.files.path_of(digest)) from error
        found = read_header(data)
        stated = ImageHeader(reference.media_type, reference.width, reference.height)
        if found != stated or len(data) != reference.bytes:
            raise reference_refused(reference, "it does not describe the picture that is stored under this id")
        return data


def _read_failed(reference: AttachmentRef, error: OSError, path: Path) -> AttachmentError:
    """The error for a picture that is not given back; it ends turns, so its first line says how to mend it.

    A request is never made without a picture its log names: what a model was asked is recomputable from the log. That
    line may reach a log, which holds no paths.
    """
    where = f"attachment {reference.attachment_id}"
    if isinstance(error, FileNotFoundError):
        return AttachmentError(
            "the picture is not in the store; send the same picture again in any session of this root, put its file "
            "back, or fork the session before the message that names it",
            where=where,
            expected="every picture the log names; a session that was copied alone lacks them",
            fix=f"send the same picture again, or put its file back as {path}",
            code="ATTACHMENT_NOT_FOUND",
        )
    return AttachmentError(
        f"the picture could not be read: {error.strerror or error}; look at the owner and mode of its file",
        where=where,
        fix=f"look at the owner and mode of {path} and of the folders above it, and at the disk",
        code="ATTACHMENT_READ_FAILED",
    )
