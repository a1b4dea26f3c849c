"""The provider client against scripted HTTP answers: what is sent, and what each answer becomes."""

from __future__ import annotations

import asyncio
import json
import ssl
import tomllib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from harness.errors import UsageError
from harness.model.call import CancelSignal, Model, ModelRequest
from harness.model.chunks import BlockEnd, BlockStart, Chunk, Failure, Finish, TextDelta
from harness.model.messages import (
    AttachmentRef,
    ImageBlock,
    Message,
    MessageId,
    TextBlock,
    UserSource,
)
from harness.provider.http import MAX_ERROR_BODY_BYTES, USER_AGENT, HttpModel, build_model

ROOT = Path(__file__).parents[3]
CASES = ROOT / "lanes" / "cases" / "sse"
BASE = "https://api.example.test/v1"
URL = f"{BASE}/chat/completions"
KEY = "sk-canary-0f3e9b"
NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
HELLO = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
HELLO_CHUNKS = (BlockStart(0, "text"), TextDelta(0, "Hello"), BlockEnd(0, TextBlock("Hello")), Finish("stop"))


class Cancel:
    """A cancel signal the test can give."""

    def __init__(self) -> None:
        self._given = asyncio.Event()

    @property
    def cancelled(self) -> bool:
        return self._given.is_set()

    async def wait(self) -> None:
        await self._given.wait()

    def give(self) -> None:
        self._given.set()


def request(text: str = "hi", **options: Any) -> ModelRequest:
    message = Message(MessageId("u"), "user", (TextBlock(text),), UserSource())
    return ModelRequest("deepseek", "m-small", (message,), **options)


def model(**options: Any) -> HttpModel:
    return build_model(**{"base_url": BASE, "api_key": KEY, "transport": None, "now": lambda: NOW, **options})


async def ask(asked: Model, cancel: CancelSignal | None = None, what: ModelRequest | None = None) -> tuple[Chunk, ...]:
    return tuple([chunk async for chunk in asked.stream(what or request(), cancel or Cancel())])


def failure_in(chunks: tuple[Chunk, ...]) -> Failure:
    last = chunks[-1]
    assert isinstance(last, Finish)
    assert last.failure is not None
    return last.failure


@pytest.fixture
def service() -> Any:
    with respx.mock(using="httpx", base_url=BASE, assert_all_called=False) as router:
        yield router.post("/chat/completions")


def events(body: bytes = HELLO, **headers: str) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8", **headers}, content=body)


# what is sent --------------------------------------------------------------------------------------------------------


async def test_one_answer_is_one_request_in_the_dialect_s_form(service: respx.Route) -> None:
    service.return_value = events()
    chunks = await ask(model(), what=request(max_tokens=7))
    sent = service.calls.last.request
    assert (chunks, service.call_count, str(sent.url), json.loads(sent.content)) == (
        HELLO_CHUNKS,
        1,
        URL,
        {
            "model": "m-small",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 7,
        },
    )


async def test_the_header_fields_name_the_product_and_nothing_of_the_person(service: respx.Route) -> None:
    service.return_value = events()
    await ask(model())
    fields = dict(service.calls.last.request.headers)
    fields.pop("content-length")
    assert fields == {
        "host": "api.example.test",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "authorization": f"Bearer {KEY}",
    }


def test_the_user_agent_names_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"five-lanes-harness/{version}" == USER_AGENT


async def test_B21_cookies_of_one_answer_are_not_sent_with_the_next(service: respx.Route) -> None:
    service.return_value = events(HELLO, **{"set-cookie": "who=you; Path=/"})
    asked = model()
    await ask(asked)
    await ask(asked)
    assert [("cookie" in call.request.headers) for call in service.calls] == [False, False]


async def test_settings_of_the_environment_do_not_bend_the_request(
    service: respx.Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://192.0.2.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://192.0.2.1:1")
    service.return_value = events()
    assert await ask(model()) == HELLO_CHUNKS


async def test_a_local_service_may_do_without_a_key() -> None:
    with respx.mock(using="httpx") as router:
        route = router.post("http://127.0.0.1:8/chat/completions").mock(return_value=events())
        await ask(model(base_url="http://127.0.0.1:8", api_key=None))
        assert "authorization" not in route.calls.last.request.headers


@pytest.mark.parametrize(
    ("api_key", "code"), [(None, "MISSING_CREDENTIAL"), ("", "MISSING_CREDENTIAL"), ("a b", "INVALID_CREDENTIAL")]
)
async def test_no_request_leaves_without_a_usable_key(service: respx.Route, api_key: str | None, code: str) -> None:
    service.return_value = events()
    failure = failure_in(await ask(model(api_key=api_key)))
    assert (failure.code, service.call_count, "a b" in failure.message) == (code, 0, False)


async def test_a_request_that_cannot_be_written_is_a_failure_and_never_sent(service: respx.Route) -> None:
    service.return_value = events()
    picture = ImageBlock(AttachmentRef("sha256-1", "image/png", 1, 1, 1))
    what = ModelRequest("deepseek", "m", (Message(MessageId("u"), "user", (picture,), UserSource()),))
    assert (failure_in(await ask(model(), what=what)).code, service.call_count) == ("UNSUPPORTED_CONTENT", 0)


# where it may go -----------------------------------------------------------------------------------------------------


def test_D1_a_client_for_a_host_outside_the_rule_cannot_be_made() -> None:
    with pytest.raises(UsageError) as caught:
        model(allowed_hosts=frozenset({"127.0.0.1"}))
    assert caught.value.error_code == "ENDPOINT_REFUSED"


async def test_D1_a_redirect_is_not_followed(service: respx.Route) -> None:
    service.return_value = httpx.Response(307, headers={"location": "https://elsewhere.test/"})
    failure = failure_in(await ask(model(allowed_hosts={"api.example.test"})))
    assert (failure.code, service.call_count) == ("HTTP_307", 1)


def test_an_unknown_dialect_is_named_with_its_neighbour() -> None:
    with pytest.raises(UsageError) as caught:
        model(dialect="openai_chats")
    assert str(caught.value) == (
        "model route: dialect 'openai_chats' is unknown; did you mean 'openai_chat'? [NO_ADAPTER]\n"
        f"  expected: one of {', '.join(sorted(['openai_chat', *OTHER_DIALECTS]))}"
    )


OTHER_DIALECTS = ["anthropic_messages", "openai_responses"]


def test_a_plain_http_client_reads_no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: loaded.append("certificates"))
    model(base_url="http://127.0.0.1:8")
    plain = list(loaded)
    model(base_url="https://api.example.test")
    assert (plain, loaded) == ([], ["certificates"])


# what each answer becomes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        pytest.param(
            httpx.Response(401, json={"error": {"message": "wrong key", "type": "authentication_error"}}),
            Failure("authentication_error: wrong key", "AUTH", 401),
            id="401",
        ),
        pytest.param(httpx.Response(403), Failure("status 403: empty body", "AUTH", 403), id="403"),
        pytest.param(
            httpx.Response(
                429, json={"error": {"message": "slow"}}, headers={"retry-after": "2", "x-request-id": "req-1"}
            ),
            Failure("slow", "RATE_LIMIT", 429, 2000, "req-1"),
            id="429-with-facts",
        ),
        pytest.param(
            httpx.Response(429, headers={"retry-after": "Tue, 01 Jan 2030 12:00:30 GMT"}),
            Failure("status 429: empty body", "RATE_LIMIT", 429, 30_000),
            id="429-with-a-date",
        ),
        pytest.param(
            httpx.Response(429, json={"error": {"message": "pay", "code": "insufficient_quota"}}),
            Failure("insufficient_quota: pay", "QUOTA", 429),
            id="quota-in-429",
        ),
        pytest.param(
            httpx.Response(400, json={"error": {"message": "x", "code": "context_length_exceeded"}}),
            Failure("context_length_exceeded: x", "CONTEXT_WINDOW_EXCEEDED", 400),
            id="context-in-400",
        ),
        pytest.param(
            httpx.Response(400, text="no JSON"), Failure("status 400: no JSON", "INVALID_REQUEST", 400), id="400-text"
        ),
        pytest.param(
            httpx.Response(502, html="<html><h1>Bad gateway</h1></html>"),
            Failure("status 502: Bad gateway", "SERVER", 502),
            id="502-html",
        ),
        pytest.param(
            httpx.Response(529, json={"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
            Failure("overloaded_error: busy", "SERVER", 529),
            id="529",
        ),
        pytest.param(
            httpx.Response(404, json={"error": {"message": "no such model"}}),
            Failure("no such model", "HTTP_404", 404),
            id="404",
        ),
        pytest.param(
            httpx.Response(200, html="<html>Sign in</html>"),
            Failure("status 200: Sign in", "MALFORMED_RESPONSE", 200),
            id="200-html",
        ),
        pytest.param(
            httpx.Response(200, json={"error": {"message": "busy", "type": "server_error"}}),
            Failure("server_error: busy", "SERVER", 200),
            id="200-json-error",
        ),
        pytest.param(
            events(b'data: {"error":{"type":"server_error","message":"gone"}}\n\n', **{"x-request-id": "req-2"}),
            Failure("server_error: gone", "SERVER", None, None, "req-2"),
            id="error-inside-the-stream",
        ),
        pytest.param(
            events(b"", **{"x-request-id": "req-3"}),
            Failure(
                "the stream ended before a finish reason and before its end mark",
                "STREAM_CLOSED",
                None,
                None,
                "req-3",
            ),
            id="empty-stream",
        ),
        pytest.param(
            events(b"data: [DONE]\n\n"),
            Failure("the answer ended without any content", "EMPTY_RESPONSE"),
            id="empty-answer",
        ),
    ],
)
async def test_S09_answers_become_failures_and_never_exceptions(
    service: respx.Route, answer: httpx.Response, failure: Failure
) -> None:
    service.return_value = answer
    assert ((await ask(model()))[-1], service.call_count) == (Finish("error", failure), 1)


async def test_a_date_is_left_out_without_a_clock(service: respx.Route) -> None:
    service.return_value = httpx.Response(429, headers={"retry-after": "Tue, 01 Jan 2030 12:00:30 GMT"})
    assert failure_in(await ask(model(now=None))).provider_retry_after_ms is None


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(httpx.ConnectError("refused"), "TRANSPORT", "ConnectError: refused", id="connect"),
        pytest.param(httpx.ReadError(""), "TRANSPORT", "ReadError", id="reset-without-a-text"),
        pytest.param(httpx.RemoteProtocolError("bad chunk"), "TRANSPORT", "bad chunk", id="protocol"),
        pytest.param(httpx.ReadTimeout("slow"), "TIMEOUT", "ReadTimeout: slow", id="transport-s-own-timeout"),
        pytest.param(OSError(5, "I/O"), "TRANSPORT", "I/O", id="os-error"),
        pytest.param(TimeoutError("inner"), "TRANSPORT", "inner", id="a-timeout-that-is-not-ours"),
        pytest.param(RuntimeError("guard says no"), "UNKNOWN", "guard says no", id="anything-else"),
    ],
)
async def test_S08_exceptions_of_the_transport_become_failures(
    service: respx.Route, error: Exception, code: str, said: str
) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    service.side_effect = fail
    failure = failure_in(await ask(model()))
    assert (failure.code, said in failure.message, f"POST {URL}" in failure.message) == (code, True, True)


class Failing(httpx.AsyncBaseTransport):
    """A transport that raises what this function raises."""

    def __init__(self, fail: Callable[[], None]) -> None:
        self._fail = fail

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._fail()
        raise NotImplementedError


async def test_the_whole_cause_chain_is_told_once() -> None:
    def fail() -> None:
        raise httpx.ConnectError("all attempts failed") from ExceptionGroup("many", [OSError(111, "refused")])

    assert failure_in(await ask(model(transport=Failing(fail)))).message == (
        f"POST {URL}: ConnectError: all attempts failed <- ExceptionGroup: many (1 sub-exception)"
        " <- ConnectionRefusedError: [Errno 111] refused"
    )


async def test_an_exception_that_cannot_be_printed_is_named() -> None:
    class HostileError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text for you")

    def fail() -> None:
        raise HostileError

    assert failure_in(await ask(model(transport=Failing(fail)))) == Failure(f"POST {URL}: HostileError", "UNKNOWN")


# bodies in pieces ----------------------------------------------------------------------------------------------------


class Pieces(httpx.AsyncByteStream):
    """A body that comes in these pieces; an exception among them is raised in its turn."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self._pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.closed = True


class Channel(httpx.AsyncBaseTransport):
    """A transport that answers every request with this body."""

    def __init__(self, body: Pieces, status: int = 200, content_type: str = "text/event-stream") -> None:
        self._body = body
        self._status = status
        self._content_type = content_type
        self.closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(self._status, headers={"content-type": self._content_type}, stream=self._body)

    async def aclose(self) -> None:
        self.closed = True


async def test_S02_a_body_in_single_bytes_gives_the_same_chunks() -> None:
    body = Pieces(*(HELLO[n : n + 1] for n in range(len(HELLO))))
    assert (await ask(model(transport=Channel(body))), body.closed) == (HELLO_CHUNKS, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("B05-separators-openai.sse", "alpha\u2028beta\u2029gamma\u0085delta"),
        ("B06-multibyte.sse", "价格 12€ 🧪 naïve"),
    ],
)
async def test_case_B05_case_B06_the_client_uses_no_line_or_text_reader_of_the_library(name: str, text: str) -> None:
    content = (CASES / name).read_bytes()
    chunks = await ask(model(transport=Channel(Pieces(*(content[n : n + 3] for n in range(0, len(content), 3))))))
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta)) == text


async def test_case_B21_a_reset_after_partial_output_is_a_failure_without_any_block() -> None:
    partial = HELLO.split(b"\n\n")[0] + b"\n\n"
    chunks = await ask(model(transport=Channel(Pieces(partial, httpx.ReadError("reset")))))
    assert (chunks[:-1], failure_in(chunks).code) == ((BlockStart(0, "text"), TextDelta(0, "Hello")), "TRANSPORT")


async def test_case_B08c_a_reset_after_the_finish_reason_does_not_undo_the_answer() -> None:
    until_finish = HELLO.removesuffix(b"data: [DONE]\n\n")
    assert await ask(model(transport=Channel(Pieces(until_finish, httpx.ReadError("reset"))))) == HELLO_CHUNKS


@pytest.mark.parametrize(
    "tail",
    [
        pytest.param((httpx.ReadError("reset"),), id="reset"),
        pytest.param((b"data: more\n\n", b"and more"), id="more-bytes"),
    ],
)
async def test_what_comes_after_the_end_mark_changes_nothing(tail: tuple[bytes | Exception, ...]) -> None:
    body = Pieces(HELLO, *tail)
    assert (await ask(model(transport=Channel(body))), body.closed) == (HELLO_CHUNKS, True)


async def test_an_error_body_that_breaks_leaves_its_status() -> None:
    failure = failure_in(await ask(model(transport=Channel(Pieces(b"half", httpx.ReadError("reset")), 503))))
    assert failure == Failure("status 503: half", "SERVER", 503)


async def test_an_endless_error_body_is_read_only_so_far() -> None:
    read = 0

    class Endless(Pieces):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            nonlocal read
            while True:
                read += 1024
                yield b"x" * 1024

    failure = failure_in(await ask(model(transport=Channel(Endless(), 500))))
    assert (failure.code, read <= MAX_ERROR_BODY_BYTES + 1024) == ("SERVER", True)


async def test_a_compressed_stream_that_is_broken_is_a_transport_failure(service: respx.Route) -> None:
    service.return_value = httpx.Response(
        200, headers={"content-type": "text/event-stream", "content-encoding": "gzip"}, stream=Pieces(b"no gzip")
    )
    assert failure_in(await ask(model())).code == "TRANSPORT"


async def test_leaving_early_closes_the_body_at_once() -> None:
    body = Pieces(HELLO)
    chunks = model(transport=Channel(body)).stream(request(), Cancel())
    first = await anext(chunks)
    await chunks.aclose()  # type: ignore[attr-defined]  # the protocol promises an iterator, stream is a generator
    assert (first, body.closed) == (BlockStart(0, "text"), True)


async def test_an_exception_of_the_consumer_stays_an_exception_and_closes_the_body() -> None:
    body = Pieces(HELLO)
    chunks = model(transport=Channel(body)).stream(request(), Cancel())
    await anext(chunks)
    with pytest.raises(ZeroDivisionError):
        await chunks.athrow(ZeroDivisionError())  # type: ignore[attr-defined]  # see above
    assert body.closed


@pytest.mark.parametrize("given", [True, False], ids=["given", "own"])
async def test_only_an_own_transport_is_closed(given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    channel = Channel(Pieces(HELLO))
    close: Callable[[httpx.AsyncHTTPTransport], Any] = httpx.AsyncHTTPTransport.aclose

    async def noted(transport: httpx.AsyncHTTPTransport) -> None:
        closed.append(True)
        await close(transport)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "aclose", noted)
    await model(base_url="http://127.0.0.1:8", transport=channel if given else None).aclose()
    assert (channel.closed, closed) == (False, [] if given else [True])


# secrets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(httpx.Response(401, json={"error": {"message": f"wrong key: {KEY}"}}), id="error-body"),
        pytest.param(httpx.Response(500, text=f"{'x' * 1990}{KEY}"), id="where-the-message-is-cut"),
        pytest.param(httpx.Response(500, text=f"{'<p>' * 2727}{KEY}"), id="where-the-page-is-cut"),
        pytest.param(httpx.Response(500, headers={"x-request-id": KEY}), id="request-id"),
        pytest.param(events(f'data: {{"error":{{"message":"{KEY}"}}}}\n\n'.encode()), id="error-inside-the-stream"),
        pytest.param(events(f"data: no JSON {KEY}\n\n".encode()), id="malformed-event"),
        pytest.param(
            events(f'data: {{"choices":[{{"delta":{{"content":"x"}},"finish_reason":"{KEY}"}}]}}\n\n'.encode()),
            id="finish-word",
        ),
        pytest.param(httpx.ConnectError(f"cannot send Bearer {KEY}"), id="exception"),
    ],
)
async def test_S12_the_key_is_in_no_failure(service: respx.Route, answer: httpx.Response | Exception) -> None:
    if isinstance(answer, Exception):
        service.side_effect = answer
    else:
        service.return_value = answer
    asked = model()
    chunks = await ask(asked)
    shown = f"{chunks!r} {asked!r} {vars(asked)!r}"
    assert (failure_in(chunks).code != "", KEY in shown, KEY[:10] in shown) == (True, False, False)


# cancelling ----------------------------------------------------------------------------------------------------------


async def test_S08_a_cancel_before_the_request_sends_nothing(service: respx.Route) -> None:
    service.return_value = events()
    cancel = Cancel()
    cancel.give()
    assert (await ask(model(), cancel), service.call_count) == (
        (Finish("aborted", Failure("cancelled by the caller", "ABORTED")),),
        0,
    )


async def test_S08_a_cancel_between_two_chunks_ends_the_stream_before_the_next_read() -> None:
    body = Pieces(*(part + b"\n\n" for part in HELLO.split(b"\n\n")[:-1]))
    cancel = Cancel()
    chunks: list[Chunk] = []
    async for chunk in model(transport=Channel(body)).stream(request(), cancel):
        chunks.append(chunk)
        if isinstance(chunk, TextDelta):
            cancel.give()
    assert (chunks[:-1], failure_in(tuple(chunks)).code, body.closed) == (list(HELLO_CHUNKS[:2]), "ABORTED", True)


async def test_S08_a_cancel_in_the_moment_of_the_last_piece_wins() -> None:
    cancel = Cancel()

    class Late(Pieces):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            cancel.give()
            yield HELLO

    chunks = await ask(model(transport=Channel(Late())), cancel)
    assert [chunk for chunk in chunks if isinstance(chunk, Finish)] == [
        Finish("aborted", Failure("cancelled by the caller", "ABORTED"))
    ]


# the other dialect ---------------------------------------------------------------------------------------------------


async def test_the_messages_dialect_asks_at_its_own_path_with_its_own_header_fields() -> None:
    body = (CASES / "B05-separators-anthropic.sse").read_bytes()
    with respx.mock(using="httpx", base_url=BASE) as router:
        route = router.post("/messages").mock(return_value=events(body))
        chunks = await ask(model(dialect="anthropic_messages"))
        fields = route.calls.last.request.headers
    assert (chunks[-1], fields["x-api-key"], fields["anthropic-version"], "authorization" in fields) == (
        Finish("stop"),
        KEY,
        "2023-06-01",
        False,
    )


async def test_case_B09d_a_request_that_can_never_succeed_is_sent_once() -> None:
    body = (CASES / "B09d-invalid-request-only.sse").read_bytes()
    with respx.mock(using="httpx", base_url=BASE) as router:
        route = router.post("/messages").mock(return_value=events(body))
        chunks = await ask(model(dialect="anthropic_messages"))
    assert (failure_in(chunks).code, route.call_count) == ("INVALID_REQUEST", 1)
