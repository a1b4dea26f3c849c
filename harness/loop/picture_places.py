"""Where a picture that could not be read is named: in which session, by which event of its log.

Room: pure; the attempts of a step come in when a request failed.
"""

from __future__ import annotations

from dataclasses import replace

from harness.log.fold import message_of
from harness.log.session_log import SessionLog
from harness.model.chunks import Failure
from harness.wire.pictures import pictures_of

_CODES = frozenset(  # what the reader of stored pictures fails with
    {"INVALID_ATTACHMENT_REF", "ATTACHMENT_NOT_FOUND", "ATTACHMENT_CORRUPT", "ATTACHMENT_READ_FAILED"}
)


def placed(failure: Failure, log: SessionLog) -> Failure:
    """The failure with the session and the first event in front that show the model the picture it is about.

    Shape: as it is where it is about no picture, or about one that this log does not name.
    """
    if failure.code not in _CODES:
        return failure
    for event in log.surface_events():
        message = message_of(event)
        pictures = () if message is None else pictures_of(message)
        if any(picture.attachment_id in failure.message for picture in pictures):
            return replace(failure, message=f"session {log.header.id}, event {event.seq}, {failure.message}")
    return failure
