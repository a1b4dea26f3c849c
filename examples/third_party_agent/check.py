"""Run the example in all five lanes, then hold the board against what it has to say.

Room: `tox -e example` starts it. Exit code 1 and one line for each cell that says anything else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
KEYLESS = ("unit", "snapshot", "replay", "offline")
EXPECTED = {
    ("expense.tools", "unit"): "passed",
    ("expense.add", "unit"): "passed",
    ("expense.add", "replay"): "passed",
    ("expense.add", "offline"): "passed",
    ("expense.requests", "snapshot"): "passed",
    ("expense.retry", "offline"): "passed",
    ("expense.live", "real"): "not run",
}


def main() -> int:
    """Run the lanes and compare."""
    marks = {"LANE_MARK", "TOX_ENV_NAME"}  # those of the environment this runs in, which is no lane
    environ = {name: value for name, value in os.environ.items() if name not in marks and not name.endswith("_API_KEY")}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="example-") as out:
        where = ["--root", str(HERE), "--out", out]
        for lane in (*KEYLESS, "real"):
            ended = _lanes(["run", lane, *where], environ)
            if ended.returncode:
                problems.append(f"lane {lane!r} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        report = _lanes(["report", "--require", ",".join(KEYLESS), *where], environ)
        sys.stdout.write(report.stdout)
        board = json.loads((Path(out) / "board.json").read_text("utf-8"))
    cells = {
        (claim["id"], lane): cell["status"]
        for claim in board["claims"]
        for lane, cell in claim["cells"].items()
        if (claim["id"], lane) in EXPECTED
    }
    problems += [f"{claim} in {lane}: {cells.get((claim, lane))}, expected {status}"
                 for (claim, lane), status in EXPECTED.items() if cells.get((claim, lane)) != status]  # fmt: skip
    if "not run: no key" not in report.stdout:
        problems.append("the board does not say that no key was there")
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return 1 if problems or report.returncode else 0


def _lanes(arguments: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lanes", *arguments]
    return subprocess.run(command, env=environ, cwd=HERE, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
