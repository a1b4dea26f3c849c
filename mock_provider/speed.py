"""The extra `speed`: a faster event loop and a faster reader of heads, where they are installed.

Room: the server comes in, when the process is the mock provider's own. A test process stays with the standard loop: a
faster one makes its system calls where no guard sees them.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
from collections.abc import Callable

from mock_provider.http_head import CutLines, cut_with_h11, cut_with_httptools

PLAIN_VARIABLE = "MOCK_PROVIDER_PLAIN"  # set where system calls have to be seen: a guarded process, and its children


def choose_cut(*, is_fast: bool) -> CutLines:
    """The reader of heads."""
    return cut_with_httptools if is_fast and importlib.util.find_spec("httptools") else cut_with_h11


def choose_loop(*, is_fast: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes the event loop; None for the standard one."""
    if not is_fast or not importlib.util.find_spec("uvloop"):
        return None
    make: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    return make


def settle_memory() -> None:
    """Tell the collector that what is there now stays, and to look for cycles less often: a request makes none.

    The journal keeps what requests made; going through all of it again and again would take a fifth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
