"""The pages of this project and the commands in them: found, cut into words, and held against the programs themselves.

Room: the test of the pages, the runner of their commands and the writer of the reference come in.
"""

from __future__ import annotations

import difflib
import importlib
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from configparser import RawConfigParser
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAMS = {"harness": "harness.cli", "lanes": "lanes.cli", "mock-provider": "mock_provider.cli"}
OWN_PACKAGES = ("harness", "mock_provider", "lanes", "reports", "benchmarks")
# What a page may start that is not ours. A word that is in neither list is a slip of the pen until somebody adds it.
OTHERS = frozenset({
    "cat", "cd", "cp", "cut", "curl", "diff", "docker", "done", "echo", "export", "for", "fi", "git", "grep",
    "head", "if", "jq", "ls", "mkdir", "mv", "node", "npm", "npx", "nohup", "pip", "pytest", "redis-server",
    "rm", "sed", "set", "sleep", "source", "sudo", "test", "then", "touch", "tree", "true", "uv", "wc",
    "wait",
})  # fmt: skip
_FENCE = re.compile(r"^(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1.*?^\2$", re.MULTILINE | re.DOTALL)  # a text that a command is given
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. Shape: line is that of its first line inside; info is what stands behind the fence."""

    page: str
    line: int
    info: tuple[str, ...]
    text: str

    @property
    def is_shell(self) -> bool:
        """Whether it holds commands."""
        return self.info[:1] == ("sh",)

    @property
    def is_run(self) -> bool:
        """Whether `tox -e docs` executes it."""
        return self.info[:2] == ("sh", "run")


def pages(root: Path = ROOT) -> list[Path]:
    """Every page, in order."""
    found = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    return sorted({*found, *(root / "examples").rglob("*.md")})


def blocks(page: Path, root: Path = ROOT) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    name = page.relative_to(root).as_posix()
    fence, info, start, held = "", (), 0, []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        found = _FENCE.match(line.strip())
        if not fence and found is not None:
            fence, info, start, held = found["fence"], tuple(found["info"].split()), number + 1, []
        elif fence and found is not None and not found["info"].strip() and found["fence"].startswith(fence):
            yield Block(name, start, info, "\n".join(held))
            fence = ""
        elif fence:
            held.append(line)


def commands(text: str) -> Iterator[tuple[str, ...]]:
    """The commands of a shell text, each as its words, without assignments in front of it."""
    for line in re.sub(r"\\\n", " ", _HERE.sub("", text)).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        held: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|()"):
                words = _without_assignments(held)
                if words:
                    yield words
                held = []
            else:
                held.append(word)


def _without_assignments(words: Sequence[str]) -> tuple[str, ...]:
    rest = list(words)
    while rest and (_ASSIGNED.match(rest[0]) or rest[0] in {"!", "do", "then", "time"}):
        rest.pop(0)
    return tuple(rest)


def problem_of(words: Sequence[str]) -> str | None:
    """What is wrong with a command as a page gives it; None when nothing is."""
    name = Path(words[0]).name
    if name in PROGRAMS:
        return _problem_of_program(name, words[1:])
    if name == "tox":
        return _problem_of_tox(words[1:])
    if re.fullmatch(r"python(3(\.\d+)?)?", name):
        return _problem_of_python(words[1:])
    if name in OTHERS:
        return None
    near = difflib.get_close_matches(name, [*PROGRAMS, "tox", "python", *OTHERS], n=1)
    return f"{words[0]!r} is no command that a page may start{f'; did you mean {near[0]}?' if near else ''}"


def _problem_of_program(name: str, words: Sequence[str]) -> str | None:
    if not words or words[0] in {"--help", "--version", "COMMAND"}:
        return None
    known = subcommands(name)
    if words[0] not in known:
        near = difflib.get_close_matches(words[0], known, n=1)
        return f"{name} has no command {words[0]!r}{f'; did you mean {near[0]}?' if near else ''}"
    own, rest = _cut(words[1:])
    if name == "mock-provider" and rest:
        return problem_of(rest)
    allowed = {*options(name, words[0]), "--help"}
    if (name, words[0]) == ("lanes", "run"):
        from lanes.pytest_command import _FLAGS, _VALUES

        allowed |= {each for names in (*_FLAGS, *_VALUES) for each in names}
    unknown = [word for word in own if re.match(r"--?[A-Za-z]", word) and word.partition("=")[0] not in allowed]
    return f"{name} {words[0]} has no option {unknown[0]}" if unknown else None


def _cut(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before a bare `--`, and those behind it."""
    at = list(words).index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def _problem_of_tox(words: Sequence[str]) -> str | None:
    own, _rest = _cut(words)
    if "-e" not in own:
        return None
    named = own[own.index("-e") + 1].split(",")
    unknown = [each for each in named if each not in environments() and each.isascii() and each.islower()]
    return f"tox.ini has no environment {unknown[0]!r}" if unknown else None


def _problem_of_python(words: Sequence[str]) -> str | None:
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in {"-m", "-c"}:
        rest.pop(0)
    if rest[:1] == ["-m"] and len(rest) > 1:
        module = rest[1]
        is_own = module.partition(".")[0] in OWN_PACKAGES
        if module in {"lanes", "harness", "mock_provider"}:
            return _problem_of_program(module.replace("_", "-"), rest[2:])
        if is_own and not any((ROOT / module.replace(".", "/")).with_suffix(end).exists() for end in (".py", "")):
            return f"there is no module {module}"
    if rest and rest[0].endswith(".py") and "/" in rest[0] and not (ROOT / rest[0]).exists():
        return f"there is no file {rest[0]}"
    return None


@cache
def environments(root: Path = ROOT) -> frozenset[str]:
    """The environments of tox.ini."""
    parser = RawConfigParser(default_section="no section has defaults")
    parser.read(root / "tox.ini", "utf-8")
    return frozenset(name.removeprefix("testenv:") for name in parser.sections() if name.startswith("testenv:"))


@cache
def help_of(name: str, *words: str) -> str:
    """What a program says of itself."""
    if name == "harness":
        return _captured(name, words)
    main = importlib.import_module(PROGRAMS[name]).main
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()), suppress(SystemExit):  # argparse ends with its help
        main([*words, "--help"])
    return out.getvalue()


def _captured(name: str, words: Sequence[str]) -> str:
    """The help of a program that writes to its descriptors, from a process of its own."""
    command = [sys.executable, "-m", name.replace("-", "_"), *words, "--help"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


@cache
def subcommands(name: str) -> tuple[str, ...]:
    """The commands of a program, as its help lists them."""
    text = help_of(name)
    if name == "mock-provider":
        return tuple(re.findall(r"^ {4}([a-z-]+) {2,}", text, re.MULTILINE))
    listed = text.partition("commands:\n")[2].partition("\n\n")[0]
    return tuple(re.findall(r"^ {2}([a-z-]+)", listed, re.MULTILINE))


@cache
def options(name: str, command: str) -> frozenset[str]:
    """The options that a command's help names, and those of the command whose options it says it has."""
    found = set(_OPTION.findall(help_of(name, command)))
    if (name, command) == ("harness", "attachments"):
        found |= set(_OPTION.findall(help_of(name, command, "sweep")))
    return frozenset(found)
