"""The tie between the tests of a lane and the run that started them: they do not go on without it.

Room: the plugin comes in, in the one process that writes the evidence; its workers end with it by their own pipes.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from lanes.errors import GuardError

PARENT_VARIABLE = "LANES_PARENT"

_PR_SET_PDEATHSIG = 1


def tie_to_parent(parent: str) -> None:
    """End this process at once when the one of that id ends, which must be its parent.

    Limits: Linux ends it; elsewhere it goes on, and its evidence stays unjudged, which counts as little.
    Raises: GuardError when the parent has gone already or is another process.
    Source: prctl(2), PR_SET_PDEATHSIG.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if parent != str(os.getppid()):  # asked after the tie is made, so that no moment is left between the two
        raise GuardError("the run that started these tests has ended", fix="start lanes with `lanes run LANE`")
