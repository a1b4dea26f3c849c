"""Execute what the pages say: `python -m lanes.unit.repository.run_documents [PAGE ...]`.

Room: `tox -e docs` starts it. The commands of one page run in order, in one shell, in a copy of the tracked files; a
line that begins with `!` has to fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.unit.repository.documents import ROOT, blocks, pages

LIMIT_S = 1800
OWN_MARKS = ("LANE_MARK", "PYTHONPATH", "VIRTUAL_ENV", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")


def script_of(page: Path, root: Path = ROOT) -> str:
    """The shell script of a page; empty when it has nothing to run."""
    lines: list[str] = []
    for block in blocks(page, root):
        if block.is_run:
            lines.append(f"echo '== {block.page}:{block.line}'")
            lines += [_must_fail(line) if line.startswith("! ") else line for line in block.text.splitlines()]
    return "\n".join(["set -eu", *lines, ""]) if lines else ""


def _must_fail(line: str) -> str:
    command = line.removeprefix("! ")
    return f"if {command}; then echo 'this had to fail' >&2; exit 1; fi"


def copy_tree(root: Path, to: Path) -> None:
    """Copy the tracked files as they are in the working tree, into a repository of their own."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=True).stdout
    for name in filter(None, os.fsdecode(listed).split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    git = ["git", "-C", str(to), "-c", "user.name=a reader", "-c", "user.email=reader@docs.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "the tree as it is read"]):
        subprocess.run([*git, *words], check=True)


def run_page(page: Path, environ: Mapping[str, str], root: Path = ROOT) -> tuple[int, str]:
    """Run the commands of a page; gives the exit code and what was printed."""
    bash = shutil.which("bash") or "bash"
    kept = {name: value for name, value in environ.items() if name not in OWN_MARKS and not name.startswith("TOX_")}
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        copy_tree(root, Path(folder))
        done = subprocess.run(
            [bash, "-c", script_of(page, root)],
            cwd=folder,
            env={**kept, "PWD": folder},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    return done.returncode, done.stdout


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the named pages, or every page that has something to run."""
    wanted = [ROOT / name for name in arguments] or [page for page in pages() if script_of(page)]
    failed = 0
    for page in wanted:
        started = time.monotonic()
        code, said = run_page(page, environ)
        failed += code != 0
        if code:
            sys.stdout.write(said)
        name = page.relative_to(ROOT).as_posix()
        sys.stdout.write(f"{name}: {'done' if code == 0 else f'exit {code}'} in {time.monotonic() - started:.0f} s\n")
        sys.stdout.flush()
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
