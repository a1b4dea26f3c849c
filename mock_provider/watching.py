"""`--watch`: a script file read again whenever it changes; a broken edit leaves the last good script in play.

Room: asyncio and files; the command comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from mock_provider.errors import ScriptError
from mock_provider.request_log import RequestLog
from mock_provider.steps import Script

POLL_S = 0.2  # a person saves and looks; no library for change events is worth less waiting
Stamp: TypeAlias = "tuple[int, int, int] | None"


def stamp_of(path: Path) -> Stamp:
    """What changes when a file is written or replaced; None when it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Watch:
    """One file under watch.

    Shape: look() reads the file again if it changed, and hands a good script over; it tells whether it did.
    """

    def __init__(
        self, path: Path, load: Callable[[Path], Script], replace: Callable[[Script], None], log: RequestLog
    ) -> None:
        self._path = path
        self._load = load
        self._replace = replace
        self._log = log
        self._stamp = stamp_of(path)

    def look(self) -> bool:
        """Look once."""
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            script = self._load(self._path)
        except ScriptError as error:
            count = len(error.problems)
            problems = "1 problem" if count == 1 else f"{count} problems"
            self._log.event("script_kept", f"{self._path} changed and has {problems}; the last good script is kept")
            self._log.event("script_problems", str(error))
            return False
        self._replace(script)
        self._log.event("script_loaded", f"{self._path} changed and is played from now on", digest=script.digest)
        return True

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            self.look()
