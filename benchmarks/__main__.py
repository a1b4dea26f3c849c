"""`python -m benchmarks [--quick | --full] [--peer NAME=HOW] [SUBJECT ...]`: ratios of one run.

Subjects: log, loop, frames, admission, board, mock, recordings.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from benchmarks.timing import Row, table

SUBJECTS = ("log", "loop", "frames", "admission", "board", "mock", "recordings")


def main() -> int:
    """Measure the named subjects, or all of them, and print one table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subject", nargs="*", choices=(*SUBJECTS, []), help="what to measure; everything by default")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="sizes", action="store_const", const="quick", help="leave out the large sizes")
    size.add_argument("--full", dest="sizes", action="store_const", const="full", help="a million events, 10,000 turns")
    peer = (
        "another mock server to hold the mock provider against: http://127.0.0.1:PORT, or a command with {port} in it"
    )
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=HOW", help=peer)
    options = parser.parse_args()
    for subject in options.subject or SUBJECTS:
        more = {"peers": options.peer} if subject == "mock" else {}
        rows: list[Row] = importlib.import_module(f"benchmarks.{subject}").measure(sizes=options.sizes or "", **more)
        sys.stdout.write(table(rows) + "\n\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
