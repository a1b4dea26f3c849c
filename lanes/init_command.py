"""`lanes init`: a project is given its lanes, and a person is told what was written.

Room: `lanes.cli` comes in; the work itself is done by the starter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lanes.board_commands import Answer
from lanes.options import Parser
from lanes.starter import FIRST_AGENT, FOLDER, REQUIREMENT, Wish, start_project, told


def init_project(arguments: Sequence[str], _environ: Mapping[str, str]) -> Answer:
    """Write what a project needs for its lanes, all of it or nothing."""
    parser = Parser(
        prog="lanes init",
        description="Give a project its lanes: tox.ini, claims, a first test per lane, and workflows for two forges.",
        epilog="example: lanes init --package my_agent",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("folder", nargs="?", default=".", metavar="DIR", help="the project's root, this folder; made if need be")
    add("--package", default=FIRST_AGENT, metavar="NAME", help="the package that evidence is about, if there is one")
    add("--tests", default=FOLDER, metavar="DIR", help=f"where the tests go, one folder a lane; {FOLDER} by default")
    add("--requirement", default=REQUIREMENT, metavar="TEXT", help="how pip finds this program: a version, or a wheel")
    options = parser.parse_args(list(arguments))
    wish = Wish(Path(options.folder).resolve(), options.package, options.requirement, options.tests)
    return Answer(told(wish, start_project(wish)))
