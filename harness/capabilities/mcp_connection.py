"""A connection to one MCP server: opened, kept and left in a task of its own, asked from any other.

Room: mcp comes in, once servers are configured; it imports `mcp`, whose clients have to be left in the task that
entered them. Whatever a server does, nobody outside sees more than an error result or a line about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CallToolResult,
    Implementation,
    ListToolsRequest,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from pydantic import RootModel, ValidationError

from harness.capabilities.mcp_config import HttpServer
from harness.capabilities.mcp_listing import MAX_TOOLS
from harness.capabilities.mcp_results import output_of, printable
from harness.capabilities.mcp_stdio import MAX_LINE_BYTES, PROBE_S, ServerFailedError, StdioTransport
from harness.loop.redaction import Secrets
from harness.loop.tools import ToolContext, ToolOutput, error_output
from harness.model.messages import Json, JsonObject

MAX_PAGES = 50  # of a list of tools; a server that always has another page is answered with what it listed so far
CONNECT_S = 30.0  # of one step over HTTP; the time limits of start and call are shorter or longer for reasons of theirs
_ANSWER_S = 3600.0  # between two pieces of an answer over HTTP: the call's own time limit ends it long before
_LEAVE_S = 0.5  # after the one polite wait is over, for a task that was told to end
_LINE_CHARACTERS = 400


class _Untouched(RootModel[dict[str, Any]]):
    """A result as the server wrote it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of a connection, in seconds: until its tools are listed, its orderly end, its first answer."""

    start_s: float = 30.0  # an interpreter and its packages on a cold disk take several seconds
    close_s: float = 3.5  # input closed, asked, killed; headless gives all of its closing five seconds
    probe_s: float = PROBE_S


class Connection:
    """One server.

    Shape: start gives the listed tools as plain JSON; call asks one; close may be called at any time, also twice. What
    start and call give, and what a failure says, holds none of the secrets, also not a part of one that was cut.
    """

    def __init__(
        self, name: str, transport: StdioTransport | HttpServer, limits: Limits, secrets: Secrets | None = None
    ) -> None:
        self.name = name
        self.secrets = secrets or Secrets()
        self._transport = transport
        self._limits = limits
        self._closing = asyncio.Event()
        self._over = asyncio.Event()
        self._why = "was closed"
        self._client: Client | None = None
        self._has_new_list = False
        self._task: asyncio.Task[None] | None = None
        self._listed: asyncio.Future[list[object]] = asyncio.get_running_loop().create_future()

    async def start(self) -> list[object]:
        """Connect, shake hands and list the tools.

        Raises: ServerFailedError with the reason in one line.
        """
        _quieten()
        self._task = asyncio.ensure_future(self._keep())
        waits: set[asyncio.Future[Any]] = {self._listed, self._task}
        await asyncio.wait(waits, timeout=self._limits.start_s, return_when=asyncio.FIRST_COMPLETED)
        if self._listed.done():
            return [self.secrets.value(cast("Json", each)) for each in self._listed.result()]
        if not self._task.done():
            said = self._transport.last_words() if isinstance(self._transport, StdioTransport) else ""
            await self.close()
            raise ServerFailedError(f"it did not list its tools within {self._limits.start_s:g} s{said}")
        raise ServerFailedError(self._why)

    async def call(self, tool: str, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutput:
        """Ask one tool. A server that ended, an answer that is none and a cancelled call are error results."""
        client = self._client
        if client is None or self._over.is_set():
            return self._gone()
        asking = asyncio.ensure_future(client.call_tool(tool, _sendable(arguments)))
        waits = {asyncio.ensure_future(context.cancel.wait()), asyncio.ensure_future(self._over.wait())}
        try:
            await asyncio.wait({asking, *waits}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            if not asking.done():
                asking.cancel()  # which also tells the server, as far as it listens
                await asyncio.wait({asking}, timeout=self._limits.close_s)
        if asking.done() and not asking.cancelled():
            return self._output(asking)
        if context.cancel.cancelled:
            return error_output(f"the call was cancelled; the server {self.name!r} was told", "ABORTED")
        return self._gone()

    def kill(self) -> None:
        """End the server at once, without waiting for it."""
        if isinstance(self._transport, StdioTransport):
            self._transport.kill()

    async def close(self) -> None:
        """Leave the server in order, in bounded time."""
        self._closing.set()
        task = self._task
        if task is None or task.done():
            return
        if not self._listed.done():
            task.cancel()  # it is still on its way in
        if not (await asyncio.wait({task}, timeout=self._limits.close_s))[0]:
            self.kill()
            task.cancel()
            await asyncio.wait({task}, timeout=_LEAVE_S)

    async def _keep(self) -> None:
        """Enter the client, wait until it is no longer wanted or its server ended, and leave it again."""
        try:
            async with Client(
                self._opened(),
                cache=None,
                message_handler=self._hear,
                client_info=Implementation(name="harness", version="1"),
            ) as client:
                listed = await _list_tools(client)
                self._client = client
                self._listed.set_result(listed)
                await self._until_over()
        except asyncio.CancelledError:
            self._why = "was closed"
        except Exception as error:  # noqa: BLE001 - a foreign server drives a foreign client; its failure ends neither turn nor program
            self._why = self._transport_words() or reason_of(error, self.secrets)
        finally:
            self._over.set()

    def _opened(self) -> AbstractAsyncContextManager[Any]:
        if isinstance(self._transport, HttpServer):
            return _http_streams(self._transport)
        return self._transport

    async def _until_over(self) -> None:
        waits = {asyncio.ensure_future(self._closing.wait())}
        if isinstance(self._transport, StdioTransport):
            waits.add(asyncio.ensure_future(self._transport.over.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not self._closing.is_set():
            self._why = self._transport_words()
        self._over.set()

    def _transport_words(self) -> str:
        return self._transport.how if isinstance(self._transport, StdioTransport) else ""

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._has_new_list = True

    def _output(self, asking: asyncio.Task[CallToolResult]) -> ToolOutput:
        error = asking.exception()
        if error is None:
            answer = asking.result().model_dump(by_alias=True, mode="json", exclude_none=True)
            return self._with_word_on_list(output_of(cast("JsonObject", self.secrets.value(answer))))
        if self._over.is_set() or (isinstance(self._transport, StdioTransport) and self._transport.over.is_set()):
            return self._gone()
        told = error_output(f"the MCP server {self.name!r} failed: {reason_of(error, self.secrets)}", "MCP_CALL_FAILED")
        return self._with_word_on_list(told)

    def _with_word_on_list(self, output: ToolOutput) -> ToolOutput:
        """A failing call of a server that has changed its list may be about a tool that is gone; say so."""
        if not (output.is_error and self._has_new_list):
            return output
        note = f"the server {self.name!r} has changed its list of tools since this session was opened"
        return ToolOutput(output.content, is_error=True, code=output.code, context=(note,))

    def _gone(self) -> ToolOutput:
        why = self._transport_words() or self._why
        return error_output(
            f"the MCP server {self.name!r} {why}; its tools cannot be used any more in this run", "MCP_SERVER_ENDED"
        )


async def _list_tools(client: Client) -> list[object]:
    """Every listed tool as plain JSON, as the server wrote it: the typed form takes the text "true" for true."""
    found: list[object] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        params = PaginatedRequestParams(cursor=cursor)
        await client.session.list_tools(params=params)  # from it the package learns what answers and headers need
        raw = (await client.session.send_request(ListToolsRequest(params=params), _Untouched)).root
        found += raw.get("tools", [])
        following = raw.get("nextCursor")
        if not isinstance(following, str) or following == cursor or len(found) > MAX_TOOLS:
            break
        cursor = following
    return found


@asynccontextmanager
async def _http_streams(server: HttpServer) -> AsyncGenerator[Any]:
    timeout = httpx2.Timeout(CONNECT_S, read=_ANSWER_S)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout, trust_env=False) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_LINE_BYTES) as streams,
    ):
        yield streams


def reason_of(error: BaseException, secrets: Secrets) -> str:
    """Why something failed, in one line and without the secrets; of several failures the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the answer"
        text = f"its answer does not follow the protocol, {field}: {first['msg']}"
    elif isinstance(error, ServerFailedError | MCPError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return printable(secrets.text(" ".join(secrets.text(text).split())))[:_LINE_CHARACTERS]


def _sendable(arguments: Mapping[str, Json]) -> dict[str, Any]:
    """The arguments with half characters replaced: no UTF-8 can hold them, and the package sends nothing else."""

    def whole(value: Json) -> Any:
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode("utf-8")
        if isinstance(value, Mapping):
            return {whole(name): whole(each) for name, each in value.items()}
        if isinstance(value, Sequence):
            return [whole(each) for each in value]
        return value

    return {name: whole(value) for name, value in arguments.items()}


def _quieten() -> None:
    """Keep the package's own reports off the terminal: what concerns a person is said in one line elsewhere."""
    for name in ("mcp", "client", "httpx2"):
        logger = logging.getLogger(name)
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
