"""A failure for a picture says which event of which session names it, and no other failure does."""

from __future__ import annotations

import itertools

import pytest

from harness.log.events import SessionHeader, UserMessage
from harness.log.session_log import SessionLog
from harness.loop.picture_places import placed
from harness.model.chunks import Failure
from harness.model.messages import (
    AttachmentRef,
    ImageBlock,
    Message,
    MessageId,
    SessionId,
    TextBlock,
    UserSource,
)

KNOWN, LATER, UNKNOWN = (f"sha256:{digit * 64}" for digit in "abc")


def log_with(*pictures: str) -> SessionLog:
    """A log whose events are one message without a picture, and one for each picture."""
    log = SessionLog(SessionHeader(SessionId("s1"), 1), clock=itertools.count(1).__next__)
    shown = (ImageBlock(AttachmentRef(each, "image/png", 9, 2, 3)) for each in pictures)
    contents: list[TextBlock | ImageBlock] = [TextBlock("first"), *shown]
    for number, content in enumerate(contents):
        log.append(UserMessage(Message(MessageId(f"m{number}"), "user", (content,), UserSource())))
    return log


CASES = {
    "named-once": ("ATTACHMENT_NOT_FOUND", KNOWN, "session s1, event 1, "),
    "named-twice": ("ATTACHMENT_CORRUPT", LATER, "session s1, event 2, "),
    "not-named": ("ATTACHMENT_NOT_FOUND", UNKNOWN, ""),
    "about-something-else": ("BAD_REQUEST", KNOWN, ""),
}


@pytest.mark.parametrize(("code", "picture", "place"), CASES.values(), ids=CASES.keys())
def test_A03_a_failure_for_a_picture_names_the_session_and_the_first_event_with_it(
    code: str, picture: str, place: str
) -> None:
    failure = placed(Failure(f"attachment {picture}: it is gone", code), log_with(KNOWN, LATER, LATER))
    assert failure == Failure(f"{place}attachment {picture}: it is gone", code)
