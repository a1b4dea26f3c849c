"""Reach: which edited lines a test really executed, by line tracing that looks at those lines alone.

Room: loaded at interpreter start of a watched test's child processes, so it imports little; `lanes.reach_hooks` starts
and stops it around tests. Without LANES_REACH nothing here does anything.
"""

from __future__ import annotations

import json
import os
import sys
import threading

TYPE_CHECKING = False  # as in lanes.guard: start-up time
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType
    from typing import TypeAlias

    Tracer: TypeAlias = Callable[[FrameType, str, object], "Tracer | None"]

REACH_VARIABLE = "LANES_REACH"
WATCH_FILE = "watch.json"
CURRENT_FILE = "current"  # the watched test that runs now, for the processes it starts
HITS_FILE = "hits.jsonl"


class Watch:
    """The lines to look at, and the items that count.

    Shape: lines go by absolute file name, reads are absolute file names; `folder` is where hits are left. A file that
    was read is a hit of line 0.
    """

    def __init__(
        self,
        folder: str,
        root: str,
        lines: Mapping[str, Sequence[int]],
        items: Sequence[str],
        reads: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.root = root
        self._reads = frozenset(reads)
        self._hears_reads = False
        self.items = frozenset(items)
        self.files = frozenset(item.partition("::")[0] for item in items)
        self._lines = {name: frozenset(numbers) for name, numbers in lines.items()}
        self._item = ""
        self._noted: set[tuple[str, str, int]] = set()

    def start(self, item: str) -> None:
        """Trace this thread, and the threads it starts, on behalf of an item; or hear of the files it reads."""
        self._item = item
        if not self._reads:
            threading.settrace(self._enter)
            sys.settrace(self._enter)
        elif not self._hears_reads:
            self._hears_reads = True
            sys.addaudithook(self._hear)

    def stop(self) -> None:
        """Stop tracing."""
        sys.settrace(None)
        threading.settrace(None)
        self._item = ""

    def _enter(self, frame: FrameType, event: str, argument: object) -> Tracer | None:
        return self._note if frame.f_code.co_filename in self._lines else None

    def _note(self, frame: FrameType, event: str, argument: object) -> Tracer | None:
        name = frame.f_code.co_filename
        if event == "line" and frame.f_lineno in self._lines[name]:
            self._hit(name, frame.f_lineno)
        return self._note

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """An audit hook cannot be taken away, so it asks whether an item is traced."""
        if event == "open" and self._item and arguments[0] in self._reads:
            self._hit(str(arguments[0]), 0)

    def _hit(self, name: str, line: int) -> None:
        hit = (self._item, name, line)
        if hit not in self._noted:
            self._noted.add(hit)
            _append(self.folder, {"item": self._item, "file": name, "line": line})


def load_watch() -> Watch | None:
    """What the environment asks this process to watch; None when nothing."""
    folder = os.environ.get(REACH_VARIABLE)
    if not folder:
        return None
    try:
        with open(os.path.join(folder, WATCH_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - as above
            document = json.load(file)
    except FileNotFoundError:
        return None
    return Watch(folder, document["root"], document["lines"], document["items"], document["reads"])


def install_in_child() -> None:
    """Trace this process from its start when a watched test has started it."""
    watch = load_watch()
    if watch is None:
        return
    try:
        with open(os.path.join(watch.folder, CURRENT_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123 - as above
            item = file.read()
    except FileNotFoundError:
        return
    watch.start(item)


def _append(folder: str, document: Mapping[str, str | int]) -> None:
    line = json.dumps(document) + "\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(os.path.join(folder, HITS_FILE), flags, 0o600)  # noqa: PTH118 - as above
    try:
        os.write(descriptor, line.encode("utf-8"))  # one write, so that lines of many processes never mix
    finally:
        os.close(descriptor)
