"""The command that a lane's tests are started with.

Room: the runner comes in. What would change what a lane is, is refused here and not passed on.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from lanes.errors import UsageError
from lanes.policy import LanePolicy

# The plugins of a lane, by the module they stand in. Nothing else is loaded: what happens to be installed changes no
# lane. A plugin is named as its distribution names it, because some look for each other by these names.
_PLUGINS = {"anyio": "anyio.pytest_plugin", "timeout": "pytest_timeout", "hypothesispytest": "_hypothesis_pytestplugin"}
_PLUGINS_WITHOUT_KEY = {"respx": "respx.plugin", "mock_provider.pytest_fixtures": "mock_provider.pytest_fixtures"}
_ORDER_PLUGIN = {"random_order": "random_order.plugin"}
_WORKER_PLUGIN = {"xdist": "xdist.plugin"}
_REFUSED = (
    "-c",
    "--config-file",
    "--confcutdir",
    "--dist",
    "--import-mode",
    "--max-worker-restart",
    "--noconftest",
    "--override-ini",
    "-o",
    "--pyargs",
    "--reruns",
    "--rootdir",
    "--runxfail",
    "--setup-only",
    "--setup-plan",
    "-p",
)


def check_arguments(root: Path, policy: LanePolicy, arguments: Sequence[str]) -> None:
    """Check that a lane can start: its folder is there, and no argument would change what it is.

    Raises: UsageError.
    """
    if not (root / "lanes" / policy.name).is_dir():
        message = f"there is no folder lanes/{policy.name} here"
        raise UsageError(
            message, where=f"lane {policy.name!r}", fix="start in the project's root, or name it: --root DIR"
        )
    for argument in arguments:
        option = argument.partition("=")[0]
        short = argument[:2] if len(argument) > 2 and argument[1] != "-" else ""
        if option in _REFUSED or short in _REFUSED:
            message = f"option {argument!r} could change what a lane is and is not passed on"
            raise UsageError(message, where=f"lane {policy.name!r}", fix="leave it out")


def build_command(root: Path, policy: LanePolicy, workers: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Build the command line: the lane's plugins, its folder unless files are named, and the person's arguments."""
    plugins = {"lanes.plugin": "lanes.plugin"} | _PLUGINS
    if policy.keyless:
        plugins |= _PLUGINS_WITHOUT_KEY
    if any(argument.startswith("--random-order") for argument in arguments):
        plugins |= _ORDER_PLUGIN
    spread: tuple[str, ...] = ()
    if workers != "0":
        plugins |= _WORKER_PLUGIN
        # only `load` survives a worker that dies, and a new worker would hide that one did
        spread = ("-n", workers, "--dist=load", "--max-worker-restart=0")
    target = () if names_files(root, arguments) else (f"lanes/{policy.name}",)
    loaded = [each for name, module in plugins.items() if _is_there(module) for each in ("-p", name)]
    fixed = ("--rootdir", str(root), "--import-mode=importlib", "-p", "no:cacheprovider")
    return (sys.executable, "-m", "pytest", *fixed, *loaded, *spread, *arguments, *target)


def names_files(root: Path, arguments: Sequence[str]) -> bool:
    """Whether the person named files or folders, so that less than the whole lane runs."""
    return any(not each.startswith("-") and (root / each.partition("::")[0]).exists() for each in arguments)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its package is not installed
        return False
