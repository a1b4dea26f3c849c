"""Looking after the stored pictures of a session root: `harness attachments sweep`.

Room: the command line comes in.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from harness.capabilities.chance import wall_clock
from harness.errors import AttachmentError, UsageError
from harness.log.attachments_sweep import LEAST_GRACE_MS, sweep
from harness.transport.stdio import StandardStreams

EXIT_BLOCKED = 1
MS_PER_HOUR = 3_600_000


def run_sweep(session_root: Path, grace_hours: float, streams: StandardStreams, *, is_rehearsal: bool) -> int:
    """Remove the pictures that no log names, or with is_rehearsal only say which; gives the exit code.

    Units: grace_hours is how old a picture has to be.
    Raises: UsageError for a grace period that is too short; AttachmentError [ATTACHMENT_READ_FAILED] when the store
    cannot be looked at or the disk refuses.
    """
    grace_ms = round(grace_hours * MS_PER_HOUR)
    if grace_ms < LEAST_GRACE_MS:
        raise UsageError(
            f"{grace_hours:g} hours would take pictures whose messages are being written",
            where="--grace-hours",
            expected=f"{LEAST_GRACE_MS / MS_PER_HOUR:.3g} hours (a minute) or more",
        )
    try:
        swept = asyncio.run(sweep(session_root, clock=wall_clock, grace_ms=grace_ms, is_rehearsal=is_rehearsal))
    except OSError as error:
        raise AttachmentError(
            f"the pictures could not be looked at: {error.strerror or error}",
            where=str(error.filename or session_root),
            fix="look at the owner and mode of it and of the folders above it; the pictures that are left are whole",
            code="ATTACHMENT_READ_FAILED",
        ) from error
    for reason in swept.blocked_by:
        streams.write_error(f"harness attachments: nothing was removed: {reason}\n")
    word = "would remove" if is_rehearsal else "removed"
    for digest in swept.removed:
        streams.write(f"{word} sha256:{digest}\n")
    streams.write(f"{word} {len(swept.removed)}, kept {swept.kept}\n")
    return EXIT_BLOCKED if swept.blocked_by else 0
