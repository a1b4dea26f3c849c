"""The errors of the harness, told apart by who has to act.

Anyone may come in; this room imports nothing of ours.

    HarnessError                 code, where, expected, fix, exit_code
    ├── UsageError               the person: arguments, settings, files they named          exit 2
    ├── PeerError                the other end of a wire broke its rules                    exit 1
    ├── ProviderError            the model's service failed; carries the facts it gave      exit 1
    ├── LogError                 a session log cannot be used as asked
    │   ├── LogDamagedError      committed history is damaged                 LOG_DAMAGED
    │   ├── LogUnsupportedError  written by another version                   LOG_UNSUPPORTED
    │   ├── LogBusyError         another writer holds the log                 LOG_BUSY
    │   ├── LogReadError         bytes could not be read                      LOG_READ_FAILED
    │   ├── LogWriteError        bytes could not be made durable              LOG_WRITE_FAILED
    │   ├── SessionNotFoundError                                              SESSION_NOT_FOUND
    │   └── SessionExistsError                                                SESSION_ALREADY_EXISTS
    ├── AttachmentError          a stored picture cannot be kept or given back    ATTACHMENT_…
    ├── InvalidEventError        an event that may not enter a log            INVALID_EVENT
    └── InternalError            us                                                         exit 1
"""

from __future__ import annotations

from typing import ClassVar


class HarnessError(Exception):
    """An error with a place, an expectation and a way to mend it.

    Shape: str(error) is the whole message for a person, `where: what [CODE]` and then the indented lines
    `expected:` and `fix:` when they say something.
    """

    code: ClassVar[str] = "ERROR"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        fix: str = "",
        code: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.fix = fix
        self.error_code = code or self.code

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        lines = [f"{head} [{self.error_code}]"]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class UsageError(HarnessError):
    """The person asked for something that cannot be done as asked."""

    code = "USAGE"
    exit_code = 2


class PeerError(HarnessError):
    """The other end of a wire broke the rules of that wire."""

    code = "PEER"


class ProviderError(HarnessError):
    """The model's service failed or refused.

    Shape: the optional facts are kept exactly as the service gave them, and only when valid.
    Units: status is an HTTP status 100 to 599; retry_after_ms is a positive number of milliseconds.
    """

    code = "UNKNOWN"

    def __init__(
        self,
        what: str,
        *,
        code: str,
        status: int | None = None,
        retry_after_ms: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(what, code=code)
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.request_id = request_id


class LogError(HarnessError):
    """A session log cannot be used as asked; the file was left as it was."""

    code = "LOG"


class LogDamagedError(LogError):
    """History that was once committed no longer reads back."""

    code = "LOG_DAMAGED"


class LogUnsupportedError(LogError):
    """The log was written by a version this one cannot read; the message names the direction."""

    code = "LOG_UNSUPPORTED"


class LogBusyError(LogError):
    """Another process holds the log for writing, or wrote to it behind our back."""

    code = "LOG_BUSY"


class LogReadError(LogError):
    """A log, or the place where it may stand, cannot be read: a mode, a link to nothing, something that is no file."""

    code = "LOG_READ_FAILED"


class LogWriteError(LogError):
    """Bytes could not be made durable; what was not written is still held for the next flush."""

    code = "LOG_WRITE_FAILED"


class SessionNotFoundError(LogError):
    """No log of that id under the session root."""

    code = "SESSION_NOT_FOUND"


class SessionExistsError(LogError):
    """An id may be created once; this one is taken."""

    code = "SESSION_ALREADY_EXISTS"


class AttachmentError(HarnessError):
    """A stored picture cannot be kept or given back; what the person can mend about a picture is a UsageError.

    Shape: the code is one of INVALID_ATTACHMENT_REF, ATTACHMENT_CORRUPT, ATTACHMENT_WRITE_FAILED,
    ATTACHMENT_NOT_FOUND and ATTACHMENT_READ_FAILED.
    """

    code = "ATTACHMENT"


class InvalidEventError(HarnessError):
    """An event that may not enter a log; the log is unchanged."""

    code = "INVALID_EVENT"


class InternalError(HarnessError):
    """A rule of our own was broken by our own code."""

    code = "INTERNAL"
