"""Which answers say that a task could not be judged, and by which code."""

from __future__ import annotations

import httpx
import pytest

from lanes.record import BLOCKING_REASONS, REASONS
from lanes.trouble import CONDITIONS, LASTING, trouble_of_failure, trouble_of_status


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        pytest.param(200, b"", None, id="ok"),
        pytest.param(400, b'{"error": "bad request"}', None, id="the-program-s-own-fault"),
        pytest.param(404, b"", None, id="not-found"),
        pytest.param(401, b"", "credential-rejected", id="status-30-rejected-key"),
        pytest.param(403, b"", "credential-rejected", id="not-allowed"),
        pytest.param(402, b"", "quota", id="no-balance"),
        pytest.param(429, b'{"error": {"code": "insufficient_quota"}}', "quota", id="status-31-quota"),
        pytest.param(400, b'{"error": {"message": "Your credit balance is too low"}}', "quota", id="credit"),
        pytest.param(429, b"slow down", "outage", id="too-many-requests"),
        pytest.param(500, b"", "outage", id="internal-error"),
        pytest.param(529, b"", "outage", id="overloaded"),
    ],
)
def test_a_status_tells_what_stood_in_the_way(status: int, body: bytes, code: str | None) -> None:
    found = trouble_of_status(status, body)

    assert (None if found is None else found.code) == code


def test_a_request_without_an_answer_names_the_host_and_the_failure() -> None:
    found = trouble_of_failure("api.acme.example", httpx.ConnectError("[Errno 111]\nrefused"))

    assert (found.code, found.text) == (
        "outage",
        "api.acme.example was not reached: ConnectError, [Errno 111] refused",
    )


def test_every_code_of_trouble_blocks_and_has_words() -> None:
    assert CONDITIONS.keys() | LASTING <= BLOCKING_REASONS
    assert REASONS.keys() >= BLOCKING_REASONS
