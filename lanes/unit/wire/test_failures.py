"""Error answers: status, headers and body against the table of codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.loop.retry import RetryPolicy, next_retry
from harness.model.chunks import Failure
from harness.wire.failures import MAX_RETRY_AFTER_MS, classify_error, request_id_of, retry_after_ms

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


def body(**error: object) -> bytes:
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("status", "content", "code"),
    [
        pytest.param(401, body(message="no"), "AUTH", id="401"),
        pytest.param(403, body(message="no"), "AUTH", id="403"),
        pytest.param(401, body(message="insufficient quota"), "AUTH", id="401-with-quota-words"),
        pytest.param(402, body(message="Insufficient Balance"), "QUOTA", id="402"),
        pytest.param(402, b"", "QUOTA", id="402-without-a-body"),
        pytest.param(429, body(message="slow down", type="requests"), "RATE_LIMIT", id="429"),
        pytest.param(
            429,
            body(
                message="Rate limit reached for m on tokens per min. Add a payment method at https://example.test/billing.",
                code="rate_limit_exceeded",
            ),
            "RATE_LIMIT",
            id="429-that-names-a-billing-page",
        ),
        pytest.param(
            429,
            body(message="You exceeded your current quota, please check your plan.", code="insufficient_quota"),
            "QUOTA",
            id="quota-in-429",
        ),
        pytest.param(429, body(message="x", code="insufficient_quota"), "QUOTA", id="quota-word-in-the-code"),
        pytest.param(400, body(message="Your credit balance is too low"), "QUOTA", id="quota-in-400"),
        pytest.param(429, "账户余额不足".encode(), "QUOTA", id="quota-in-chinese"),
        pytest.param(400, body(message="unknown field: colour"), "INVALID_REQUEST", id="400"),
        pytest.param(
            400,
            body(message="This model's maximum context length is 8192 tokens.", code="context_length_exceeded"),
            "CONTEXT_WINDOW_EXCEEDED",
            id="context-in-400",
        ),
        pytest.param(
            400, body(message="prompt is too long: 9 tokens > 8"), "CONTEXT_WINDOW_EXCEEDED", id="prompt-too-long"
        ),
        pytest.param(
            400,
            b"the request exceeds the available context size",
            "CONTEXT_WINDOW_EXCEEDED",
            id="context-in-plain-text",
        ),
        pytest.param(413, body(message="context window exceeded"), "CONTEXT_WINDOW_EXCEEDED", id="context-in-413"),
        pytest.param(
            400, body(message="max_tokens is too large: 9"), "INVALID_REQUEST", id="output-limit-is-no-overflow"
        ),
        pytest.param(500, body(message="oops"), "SERVER", id="500"),
        pytest.param(503, b"<html><body>Bad gateway</body></html>", "SERVER", id="503-html"),
        pytest.param(529, body(type="overloaded_error", message="busy"), "SERVER", id="529"),
        pytest.param(404, body(message="no such model"), "HTTP_404", id="404"),
        pytest.param(422, body(message="bad"), "HTTP_422", id="422"),
        pytest.param(408, b"", "HTTP_408", id="408"),
        pytest.param(302, b"", "HTTP_302", id="redirect"),
        pytest.param(204, b"", "HTTP_204", id="no-content"),
        pytest.param(200, b"<html>sign in</html>", "MALFORMED_RESPONSE", id="200-html"),
        pytest.param(200, b'{"choices":[]}', "MALFORMED_RESPONSE", id="200-json-without-a-stream"),
        pytest.param(200, body(message="slow", type="rate_limit_error"), "RATE_LIMIT", id="200-with-an-error-object"),
        pytest.param(500, b"[" * 100_000, "SERVER", id="500-nested-too-deeply"),
        pytest.param(500, b"\xff\xfe\x00", "SERVER", id="500-no-text"),
    ],
)
def test_S09_status_table(status: int, content: bytes, code: str) -> None:
    failure = classify_error(status, {}, content)
    assert (failure.code, failure.status) == (code, status)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(body(message="no", type="t"), "t: no", id="openai"),
        pytest.param(body(message="no", type="t", code="c"), "t (c): no", id="type-and-code"),
        pytest.param(
            b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}',
            "overloaded_error: busy",
            id="anthropic",
        ),
        pytest.param(
            b'{"object":"error","message":"no","type":"BadRequestError","code":400}', "BadRequestError: no", id="vllm"
        ),
        pytest.param(b'{"error":"model not found"}', "model not found", id="ollama"),
        pytest.param(b'{"detail":"Not Found"}', "Not Found", id="fastapi"),
        pytest.param(b'{"detail":[{"loc":["body"],"msg":"bad"}]}', '[{"loc":["body"],"msg":"bad"}]', id="fastapi-list"),
        pytest.param(b'{"error":{}}', 'status 418: {"error":{}}', id="empty-error"),
        pytest.param(b'{"a":1}', 'status 418: {"a":1}', id="other-json"),
        pytest.param(b"", "status 418: empty body", id="empty-body"),
        pytest.param(b" Bad\n  gateway ", "status 418: Bad gateway", id="plain-text"),
        pytest.param(
            b"<html><style>b{}</style><script>if (a<b) x()</script><h1>502</h1>Bad <b>gateway</b></html>",
            "status 418: 502 Bad gateway",
            id="html",
        ),
    ],
)
def test_S09_the_service_s_own_words_reach_the_person(content: bytes, message: str) -> None:
    assert classify_error(418, {}, content).message == message


def test_an_endless_error_page_costs_little() -> None:
    assert len(classify_error(500, {}, b"<script" * 20_000).message) < 10_000


def test_facts_of_an_error_are_kept() -> None:
    headers = {"Retry-After": "2", "X-Request-Id": "req-1"}
    assert classify_error(429, headers, body(message="slow")) == Failure("slow", "RATE_LIMIT", 429, 2000, "req-1")


def test_a_request_id_in_the_body_serves_when_no_header_has_one() -> None:
    content = b'{"type":"error","error":{"type":"t","message":"m"},"request_id":"req_9"}'
    assert classify_error(500, {}, content).request_id == "req_9"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, None, id="absent"),
        pytest.param({"retry-after": "7"}, 7000, id="seconds"),
        pytest.param({"retry-after": " 0.25 "}, 250, id="part-of-a-second"),
        pytest.param({"retry-after": "0"}, None, id="zero"),
        pytest.param({"retry-after": "-1"}, None, id="negative"),
        pytest.param({"retry-after": "soon"}, None, id="words"),
        pytest.param({"retry-after": "1e3"}, None, id="odd-number"),
        pytest.param({"retry-after": "nan"}, None, id="nan"),
        pytest.param({"retry-after": "\u0661"}, None, id="digits-of-another-script"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "2"}, 1500, id="milliseconds-first"),
        pytest.param({"retry-after-ms": "x", "retry-after": "2"}, 2000, id="bad-milliseconds"),
        pytest.param({"retry-after": "Tue, 01 Jan 2030 12:00:30 GMT"}, 30_000, id="future-date"),
        pytest.param({"retry-after": "Tue, 01 Jan 2030 12:00:30"}, 30_000, id="date-without-a-zone"),
        pytest.param({"retry-after": "Tue, 01 Jan 2030 14:00:30 +0200"}, 30_000, id="date-in-another-zone"),
        pytest.param({"retry-after": "Tue, 01 Jan 2030 11:59:59 GMT"}, None, id="past-date"),
    ],
)
def test_retry_after_is_kept_only_when_valid(headers: dict[str, str], expected: int | None) -> None:
    assert retry_after_ms(headers, NOW) == expected


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"retry-after": "9999999999999"}, id="seconds"),
        pytest.param({"retry-after": "9" * 5000}, id="thousands-of-digits"),
        pytest.param({"retry-after-ms": "9" * 400}, id="milliseconds"),
        pytest.param({"retry-after": "Mon, 01 Jan 10000 00:00:00 GMT"}, id="first-year-no-date-can-hold"),
        pytest.param({"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, id="year-no-number-can-hold"),
    ],
)
def test_R05_a_wait_beyond_every_measure_is_a_long_one_and_no_retry_follows(headers: dict[str, str]) -> None:
    failure = classify_error(429, headers, body(message="slow"), now=NOW)
    assert (failure.code, failure.provider_retry_after_ms) == ("RATE_LIMIT", MAX_RETRY_AFTER_MS)
    assert next_retry(RetryPolicy(), 0, failure, 0.5) is None


@pytest.mark.parametrize("zone", ["+99999999999999999999", "+9999", "-99999999999"])
def test_R05_a_date_with_a_zone_that_is_none_says_nothing_and_is_no_error(zone: str) -> None:
    failure = classify_error(429, {"retry-after": f"Tue, 01 Jan 2030 12:00:30 {zone}"}, b"", now=NOW)
    assert (failure.code, failure.provider_retry_after_ms) == ("RATE_LIMIT", None)


@given(st.text("0123456789 ,:+-GMTJanue", max_size=40))
def test_R05_no_text_of_a_retry_after_is_an_error(text: str) -> None:
    found = retry_after_ms({"retry-after": text}, NOW)
    assert found is None or 1 <= found <= MAX_RETRY_AFTER_MS


def test_a_date_says_nothing_without_a_clock() -> None:
    assert retry_after_ms({"retry-after": "Tue, 01 Jan 2030 12:00:30 GMT"}, None) is None


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({"request-id": "r2", "x-request-id": "r1"}, "r1", id="first-name-wins"),
        pytest.param({"request-id": "r2"}, "r2", id="anthropic"),
        pytest.param({"x-request-id": "two words"}, None, id="white-space"),
        pytest.param({"x-request-id": "x" * 201}, None, id="too-long"),
        pytest.param({"x-request-id": "", "x-ds-trace-id": "t"}, "t", id="empty-is-skipped"),
    ],
)
def test_request_ids_are_kept_only_when_valid(headers: dict[str, str], expected: str | None) -> None:
    assert request_id_of(headers) == expected
