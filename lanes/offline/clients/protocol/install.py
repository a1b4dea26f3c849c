"""Install the published clients that cannot stand in an environment of Python packages: each in a folder of its own.

Room: `tox -e offline-clients` runs it before the lane, outside its wall. What is installed is locked in
`requirements/clients`: Python packages by hash, without what they depend on; Node packages by integrity, without their
peers. A program that is not there (npm, pip) is said, and the tests that need it are then not run; an installation
that fails is an error.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

LOCKS = Path(__file__).resolve().parents[4] / "requirements" / "clients"
HOME = Path(sys.prefix) / "clients"
STAMP = ".lock"  # a copy of the lock that a folder was installed from


def main() -> int:
    """Install what is not there yet in its locked version; gives the exit code."""
    HOME.mkdir(exist_ok=True)
    codes = [install_python(lock) for lock in sorted(LOCKS.glob("python-*.txt"))]
    codes.append(install_node(LOCKS, HOME / "node", "ci"))
    codes.append(install_node(LOCKS / "acpx", HOME / "acpx", "install"))  # ci wants optional packages nobody can have
    return max(codes)


def install_python(lock: Path) -> int:
    """Install one version of a Python client into the folder of its lock's name."""
    target = HOME / lock.stem
    if _is_current(target, lock):
        return 0
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else []
    if not pip and (uv := shutil.which("uv")):
        pip = [uv, "pip"]
    if not pip:
        return _say(f"{lock.stem}: there is neither pip nor uv here, its tests are not run")
    shutil.rmtree(target, ignore_errors=True)
    asked = ["install", "--quiet", "--no-deps", "--require-hashes", "--target", str(target), "--requirement", str(lock)]
    return _run([*pip, *asked], LOCKS, target, lock)


def install_node(source: Path, target: Path, command: str) -> int:
    """Install the Node packages that a folder locks, by npm's `ci` or `install`."""
    lock = source / "package-lock.json"
    if _is_current(target, lock):
        return 0
    npm = shutil.which("npm")
    if npm is None:
        return _say(f"there is no npm here, the tests with Node's {target.name} are not run")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(source / name, target)
    asked = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    return _run([npm, command, *asked], target, target, lock)


def _is_current(target: Path, lock: Path) -> bool:
    stamp = target / STAMP
    return stamp.is_file() and stamp.read_bytes() == lock.read_bytes()


def _run(command: list[str], folder: Path, target: Path, lock: Path) -> int:
    code = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, check=False).returncode
    if code == 0:
        shutil.copy(lock, target / STAMP)
    else:
        sys.stderr.write(f"{target.name}: installation ended with status {code}\n")
    return code


def _say(text: str) -> int:
    sys.stderr.write(f"offline-clients: {text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
