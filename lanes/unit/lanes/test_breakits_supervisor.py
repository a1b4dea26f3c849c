"""The parent of one run of a proof: what hangs is ended, with whatever it started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lanes import breakits_supervisor
from lanes.breakits_supervisor import LIMIT_MET

LIMIT_S = "3"  # long enough for a busy machine to start the two processes; what hangs takes all of it
HANGS = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)
with open('pids', 'w') as file:
    file.write(f'{os.getpid()} {child.pid}')
time.sleep(300)
"""


def test_proofs_78_what_hangs_is_ended_with_the_child_that_left_its_session(tmp_path: Path) -> None:
    command = [sys.executable, breakits_supervisor.__file__, LIMIT_S, sys.executable, "-c", HANGS]

    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=60, check=False)

    pids = [int(pid) for pid in (tmp_path / "pids").read_text("utf-8").split()]
    assert (done.returncode, len(pids)) == (LIMIT_MET, 2)
    assert [pid for pid in pids if is_alive(pid)] == [], "it left a process behind"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
