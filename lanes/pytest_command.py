"""The command that a lane's tests are started with.

Room: the runner comes in. What would change what a lane is, is refused here and not passed on.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from lanes.errors import UsageError
from lanes.policy import LanePolicy

# The plugins of a lane, by the module they stand in. Nothing else is loaded: what happens to be installed changes no
# lane. A plugin is named as its distribution names it, because some look for each other by these names.
_PLUGINS = {"anyio": "anyio.pytest_plugin", "timeout": "pytest_timeout", "hypothesispytest": "_hypothesis_pytestplugin"}
_OWN_PLUGINS = {"lanes.channel_fixture": "lanes.channel_fixture", "lanes.plugin": "lanes.plugin"}
_PLUGINS_WITHOUT_KEY = {"respx": "respx.plugin", "mock_provider.pytest_fixtures": "mock_provider.pytest_fixtures"}
_ORDER_PLUGIN = {"random_order": "random_order.plugin"}
_WORKER_PLUGIN = {"xdist": "xdist.plugin"}

# What may be passed on to pytest: which tests run, in which order, when to stop, and what is shown of them. A list of
# what may not be passed on would never be whole: pytest reads `-vo`, `--opt=value` and `@file` too.
_FLAGS: tuple[tuple[str, ...], ...] = (
    ("-x", "--exitfirst"),
    ("-v", "--verbose"),
    ("-q", "--quiet"),
    ("-s",),
    ("-l", "--showlocals"),
    ("--no-showlocals",),
    ("--no-header",),
    ("--no-summary",),
    ("--no-fold-skipped",),
    ("--full-trace",),
    ("--xfail-tb",),
    ("--disable-warnings",),
    ("--strict-markers",),
    ("--strict-config",),
    ("--setup-show",),
    ("--pdb",),
    ("--random-order",),
    ("--hypothesis-show-statistics",),
)
_VALUES: tuple[tuple[str, ...], ...] = (
    ("-k",),
    ("-m",),
    ("-r",),
    ("--maxfail",),
    ("--ignore",),
    ("--ignore-glob",),
    ("--deselect",),
    ("--tb",),
    ("--durations",),
    ("--durations-min",),
    ("--verbosity",),
    ("--color",),
    ("--code-highlight",),
    ("--capture",),
    ("--show-capture",),
    ("--log-level",),
    ("--log-cli-level",),
    ("--timeout",),
    ("--random-order-bucket",),
    ("--random-order-seed",),
    ("--hypothesis-seed",),
    ("--hypothesis-verbosity",),
)


@dataclass(frozen=True, slots=True)
class PytestArguments:
    """What a person passes on to pytest.

    Shape: `given` are the arguments as they are; `paths` are those that name files, folders or items.
    """

    given: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


NO_ARGUMENTS = PytestArguments()


class _Options(argparse.ArgumentParser):
    """Reads arguments by the rules by which pytest reads them, without its reading of `@file`."""

    def __init__(self) -> None:
        super().__init__(prog="lanes run", add_help=False, allow_abbrev=False)
        for names in _FLAGS:
            self.add_argument(*names, action="count")
        for names in _VALUES:
            self.add_argument(*names, action="append")
        self.add_argument("paths", nargs="*")

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def check_arguments(root: Path, policy: LanePolicy, arguments: Sequence[str]) -> PytestArguments:
    """Check that a lane can start: its folder is there, and every argument is one that no lane minds.

    Raises: UsageError.
    """
    where = f"lane {policy.name!r}"
    if not (root / policy.suite).is_dir():
        message = f"there is no folder {policy.suite} here"
        raise UsageError(message, where=where, fix="start in the project's root, or name it: --root DIR")
    try:
        found, unknown = _Options().parse_known_intermixed_args(arguments)
    except UsageError as error:
        message = f"the arguments for pytest cannot be read: {error.what}"
        raise UsageError(message, where=where, expected=_expected(), fix="write one option after the other") from None
    for argument in [*unknown, *(path for path in found.paths if path.startswith(("-", "@")))]:
        message = f"option {argument!r} could change what a lane is and is not passed on"
        raise UsageError(message, where=where, expected=_expected(), fix="leave it out")
    for path in found.paths:
        if not (root / path.partition("::")[0]).exists():
            message = f"there is no file or folder {path.partition('::')[0]!r} here"
            raise UsageError(message, where=where, fix=f"name files below {policy.home}, or none for all of them")
    return PytestArguments(tuple(arguments), tuple(found.paths))


def build_command(
    root: Path, policy: LanePolicy, workers: str, arguments: PytestArguments = NO_ARGUMENTS
) -> tuple[str, ...]:
    """Build the command line: the lane's plugins, its folder unless files are named, and the person's arguments."""
    plugins = dict(_PLUGINS)
    if not policy.is_live:
        plugins |= _PLUGINS_WITHOUT_KEY
    if any(argument.startswith("--random-order") for argument in arguments.given):
        plugins |= _ORDER_PLUGIN
    spread: tuple[str, ...] = ()
    if workers != "0":
        plugins |= _WORKER_PLUGIN
        # only `load` survives a worker that dies, and a new worker would hide that one did
        spread = ("-n", workers, "--dist=load", "--max-worker-restart=0")
    plugins |= _OWN_PLUGINS  # behind those whose modules it loads too: pytest wants them fresh
    target = () if arguments.paths else (policy.suite,)
    loaded = [each for name, module in plugins.items() if _is_there(module) for each in ("-p", name)]
    fixed = ("--rootdir", str(root), "--import-mode=importlib", "-p", "no:cacheprovider")
    return (sys.executable, "-m", "pytest", *fixed, *loaded, *spread, *arguments.given, *target)


def _expected() -> str:
    return "files, items, and " + ", ".join(names[0] for names in (*_FLAGS, *_VALUES))


def _is_there(module: str) -> bool:
    """Whether a module is installed, told without importing its packages, which takes longer than a small lane."""
    package, *inner = module.split(".")
    spec = importlib.util.find_spec(package)
    for name in inner:
        places = None if spec is None else spec.submodule_search_locations
        spec = None if places is None else importlib.machinery.PathFinder.find_spec(name, places)
    return spec is not None
