"""The program with neighbours that misbehave in its own process: noise on standard output, a stream that cannot close.

Room: run as a program by the tests of the field cases: `noisy.py noise ARGUMENTS...` or `noisy.py raises ARGUMENTS...`.
It calls the program's own entry after it has put its neighbours in place.
"""

from __future__ import annotations

import asyncio
import ctypes
import importlib
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx

from harness.cli import main
from harness.surfaces import connection

BEFORE, BETWEEN, TURN, END = "before initialize", "between initialize and session/new", "during a turn", "at shutdown"


def noise(moment: str) -> None:
    """Make every noise of the case once, each with the moment in its words."""
    print(f"noise one {moment}")  # noqa: T201 - what the case is about
    os.write(1, f"noise two {moment}\n".encode())
    subprocess.run(["sh", "-c", f"echo noise three {moment}"], check=True)
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("neighbour").debug("noise four logged %s", moment)
    warnings.warn(f"noise four {moment}", stacklevel=1)
    banner = Path(f"banner_{abs(hash(moment))}.py")
    banner.write_text(f'print("noise five {moment}")\n', "utf-8")
    sys.path.insert(0, str(Path.cwd()))
    importlib.import_module(banner.stem)
    asyncio.get_running_loop().create_task(fails(moment))  # nobody waits for it, that is the noise
    thread = threading.Thread(target=fails_in_a_thread, args=(moment,))
    thread.start()
    thread.join()
    print(f"\x1b[31mnoise seven {moment}\x1b[0m")  # noqa: T201
    library = ctypes.CDLL(None)
    library.puts(f"noise of C {moment}".encode())
    library.fflush(None)
    sys.stdout.write(f"noise six {moment}")
    sys.stdout.flush()


async def fails(moment: str) -> None:
    raise RuntimeError(f"noise of a task {moment}")


def fails_in_a_thread(moment: str) -> None:
    raise RuntimeError(f"noise of a thread {moment}")


class Way(httpx.AsyncHTTPTransport):
    """The way to the model: noise before each request, or a stream whose end raises."""

    is_noisy = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_noisy:
            noise(TURN)
            return await super().handle_async_request(request)
        response = await super().handle_async_request(request)
        response.stream = Stubborn(response.stream)
        return response


class Stubborn(httpx.AsyncByteStream):
    """A stream that raises when it is closed."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
        os.write(2, b"the stream is closed\n")
        raise OSError("the stop itself raises")


def with_noise(serve: Callable[..., Any]) -> Callable[..., Any]:
    """The serving with noise around it."""

    async def noisily(served: Any, line: Any) -> int:
        noise(BEFORE)
        hello, end = served.handlers["initialize"], served.end

        async def said_hello(params: Any) -> Any:
            answer = await hello(params)
            noise(BETWEEN)
            return answer

        async def ended() -> None:
            noise(END)
            await end()

        served.handlers = {**served.handlers, "initialize": said_hello}
        served.end = ended
        status: int = await serve(served, line)
        return status

    return noisily


if __name__ == "__main__":
    Way.is_noisy = sys.argv[1] == "noise"
    if Way.is_noisy:
        connection.serve = with_noise(connection.serve)
    sys.exit(main(sys.argv[2:], transport=Way()))
