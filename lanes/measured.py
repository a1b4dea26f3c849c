"""One lane, run once more so that coverage can watch it: `coverage run -m lanes.measured LANE`.

Room: `tox -e coverage` alone starts it. That environment is no lane, so what it leaves would be evidence with a wrong
mark: it goes into a folder that is thrown away, and no column hears of it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.environment import MARK_VARIABLE, TOX_VARIABLE
from lanes.errors import LanesError, UsageError
from lanes.policy import lane_policy
from lanes.runner import LaneRequest, run_lane


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the lane of that name and return its exit code."""
    try:
        code, breaches = _run(arguments, environ)
    except LanesError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stderr.writelines(f"{breach}\n" for breach in breaches)
    return code


def _run(arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[int, Sequence[str]]:
    if len(arguments) != 1:
        raise UsageError("one lane is wanted", where="lanes.measured", expected="coverage run -m lanes.measured LANE")
    policy = lane_policy(arguments[0])
    if not policy.keyless:
        message = f"lane {policy.name!r} holds a key and is not measured"
        raise UsageError(message, where="lanes.measured", expected="a lane without a key")
    unmarked = {name: value for name, value in environ.items() if name not in (MARK_VARIABLE, TOX_VARIABLE)}
    workers = environ.get("LANE_WORKERS") or "0"
    with tempfile.TemporaryDirectory(prefix="measured-") as out:
        outcome = run_lane(LaneRequest(policy, "self", Path.cwd(), Path(out), workers=workers), unmarked)
    return outcome.exit_code, outcome.breaches


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
