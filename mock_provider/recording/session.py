"""`mock-provider record`: a proxy until a signal stops it or a command ends, then the files.

Room: threads, signals, child processes, the clock; the command comes in.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from mock_provider.dialects.table import BASES
from mock_provider.errors import RecordingError
from mock_provider.json_values import JsonObject
from mock_provider.ready_file import ReadyFile
from mock_provider.recording.cassette import Facts
from mock_provider.recording.cleaning import is_loopback
from mock_provider.recording.forwarding import Forwarder
from mock_provider.recording.proxy import ProxyThread
from mock_provider.recording.storing import check_folder, compose_recording, store
from mock_provider.serving import warn_about_host
from mock_provider.standard_streams import say, tell
from mock_provider.wrapped_child import GRACE_S, WrappedChild

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for. Shape: names are further headers and fields that hold secrets; command may be empty."""

    upstream: str
    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    may_replace: bool = False
    keeps_transient: bool = False
    ready_file: Path | None = None
    command: tuple[str, ...] = ()


def record(wish: Wish) -> int:
    """Record, and write the files.

    Shape: the exit code of the command if there is one, else 0; 1 when the script does not reproduce the recording.
    Raises: UsageError, RecordingError; then nothing was written.
    """
    check_folder(wish.folder, may_replace=wish.may_replace)
    warn_about_host(wish.host)
    forwarder = Forwarder(wish.upstream, now_ms=lambda: time.monotonic_ns() // 1_000_000)
    code = _serve(wish, forwarder)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    facts = Facts(forwarder.host, None if is_loopback(forwarder.host) else now)
    try:
        recording = compose_recording(
            forwarder.seen, facts, forwarder.upstream, names=wish.names, keeps_transient=wish.keeps_transient
        )
    except RecordingError as error:
        if code:
            _note(f"the command ended with exit code {code}")
        raise error.at(str(wish.folder)) from None
    store(recording, wish.folder, may_replace=wish.may_replace)
    _note(f"{wish.folder}: {', '.join(recording.files)}: {'; '.join(recording.lines)}")
    if recording.problems:
        _note("no script was written, because it would not say again what was recorded:")
        _note("\n".join(f"  {problem}" for problem in recording.problems[:10]))
        return code or 1
    return code


def _note(text: str) -> None:
    tell(f"mock-provider: {text}\n")


def _serve(wish: Wish, forwarder: Forwarder) -> int:
    """Serve until it is over. Shape: the exit code of the command, 0 without one."""
    ready = None if wish.ready_file is None else ReadyFile(wish.ready_file)
    try:
        with ProxyThread(forwarder, wish.host, wish.port) as root:
            line = ready_line(root)
            if ready is not None:
                ready.write(line)
            if wish.command:
                return WrappedChild(GRACE_S).run(wish.command, child_environment(root, os.environ))
            with _stop_by_signal() as stopped:
                say(line)
                stopped.wait()
            return 0
    finally:
        if ready is not None:
            ready.remove()


@contextlib.contextmanager
def _stop_by_signal() -> Iterator[threading.Event]:
    """Something that a signal sets."""
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        stopped.set()

    is_deaf = signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL  # as nohup asks
    listened = [number for number in STOP_SIGNALS if number != signal.SIGHUP or not is_deaf]
    before = {number: signal.signal(number, stop) for number in listened}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ready_line(root: str) -> str:
    """What a starter needs to know, as one line of JSON."""
    urls: JsonObject = {base.name: root + base.path for base in BASES}
    return json.dumps({"ready": True, "root": root, "base_urls": urls}) + "\n"


def child_environment(root: str, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of the command: base URLs set, keys left alone, since the provider wants real ones."""
    host = root.removeprefix("http://").rpartition(":")[0].strip("[]")
    spared = ",".join(part for part in (given.get("no_proxy", given.get("NO_PROXY", "")), host, "localhost") if part)
    urls = {name: root + base.path for base in BASES for name in base.variables}
    return {**given, **urls, "NO_PROXY": spared, "no_proxy": spared}
