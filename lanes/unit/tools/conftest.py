"""A workspace, its tools, and one way to call a tool."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from harness.loop.tools import ToolContext, ToolOutput
from harness.model.messages import CallId, Json, TextBlock
from harness.tools.shipped import ShippedTools, build_tools


class Cancel:
    """A cancel signal in the hands of the test."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


Call = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    return tmp_path / "spill"


@pytest.fixture
async def shipped(anyio_backend: str, root: Path, spill: Path) -> AsyncIterator[ShippedTools]:
    tools = build_tools(root, spill_dir=spill, environment={"PATH": os.environ["PATH"]}, shell_timeout_s=30)
    yield tools
    await tools.close()


@pytest.fixture
def call(shipped: ShippedTools) -> Call:
    async def run(
        name: str, arguments: Mapping[str, Json], *, cancel: Cancel | None = None, call_id: str = "call-1"
    ) -> ToolOutput:
        context = ToolContext(call_id=CallId(call_id), cancel=cancel or Cancel())
        return await shipped.tools[name].run(arguments, context)

    return run


@pytest.fixture
def new_cancel() -> Callable[[], Cancel]:
    return Cancel


@pytest.fixture
def text_of_output() -> Callable[[ToolOutput], str]:
    def text(output: ToolOutput) -> str:
        return "".join(block.text for block in output.content if isinstance(block, TextBlock))

    return text
