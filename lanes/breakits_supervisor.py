"""The parent of one run of a proof: enforces its time limit, and leaves no process behind, wherever it fled to.

Room: `lanes.breakits_run` starts this file as a program of its own, with no site and no path; nobody imports it.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import NoReturn

LIMIT_MET = 124  # as timeout(1) says it
_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans below us become our children, also those of another session
_PATIENCE_S = 10.0


def main(arguments: list[str]) -> int:
    """Run a command for at most so many seconds and end everything it started."""
    limit_s, command = float(arguments[0]), arguments[1:]
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _stop)
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return LIMIT_MET
    finally:
        _end_everything(process)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _end_everything(process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _PATIENCE_S
    _kill(-process.pid)
    while (found := _descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in found:
            _kill(pid)
        _reap()
        time.sleep(0.01)
    _reap()


def _descendants(root: int) -> list[int]:
    """Every process below ours that has not ended; Linux only, elsewhere the process group is all there is."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH208, PTH112 - no pathlib in a process that must start at once
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if fields[0] != b"Z":
                parents[int(name)] = int(fields[1])
    found: list[int] = []
    layer = {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found += layer
    return found


def _kill(pid: int) -> None:
    # it may have ended meanwhile, and somebody else may have its number
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if pid < 0 else os.kill)(abs(pid), signal.SIGKILL)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:  # no child is left
        pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
