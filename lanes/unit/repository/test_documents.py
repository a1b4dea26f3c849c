"""What the pages say can be done can be done: every command is one that its program has, every link leads somewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from lanes.unit.repository.documents import ROOT, Block, blocks, commands, pages, problem_of
from lanes.unit.repository.run_documents import run_page, script_of

SHELL = [block for page in pages() for block in blocks(page) if block.is_shell]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def name_of(block: Block) -> str:
    return f"{block.page}:{block.line}"


@pytest.mark.parametrize("block", SHELL, ids=name_of)
def test_every_command_of_a_page_is_one_that_its_program_has(block: Block) -> None:
    found = {" ".join(words): problem for words in commands(block.text) if (problem := problem_of(words)) is not None}

    assert found == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("lanes rnu unit", "lanes has no command 'rnu'; did you mean run?", id="command"),
        pytest.param("lanes run unit --shards 1/2", "lanes run has no option --shards", id="option"),
        pytest.param(".venv/bin/lanes report --requires unit", "lanes report has no option --requires", id="path"),
        pytest.param("mock-provider run a --log=text -- harness ran", "harness has no command 'ran'", id="wrapped"),
        pytest.param("A=1 harness run --modell m", "harness run has no option --modell", id="assigned"),
        pytest.param("harness acp --stored", "harness acp has no option --stored", id="prefix"),
        pytest.param("tox -e ofline", "tox.ini has no environment 'ofline'", id="environment"),
        pytest.param("python -m lanes.nowhere", "there is no module lanes.nowhere", id="module"),
        pytest.param("python lanes/nowhere.py", "there is no file lanes/nowhere.py", id="file"),
        pytest.param("cd x && lnaes ids", "'lnaes' is no command that a page may start", id="unknown"),
    ],
)  # fmt: skip
def test_a_command_that_nobody_has_is_named(text: str, said: str) -> None:
    [problem] = [problem for words in commands(text) if (problem := problem_of(words))]
    assert problem.startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "lanes run unit lanes/unit/wire -x -n 2 --shard 1/2",
        "lanes proofs --sample   # a comment; with signs",
        "mock-provider run script.yaml -- python client.py",
        'harness run --cwd ~/project --timeout 600 "fix the failing test"',
        "python3 -m venv .venv && .venv/bin/pip install -q tox",
        "tox -e record -- STORY --target TARGET",
        "harness attachments sweep",
    ],
)
def test_commands_as_they_are_meant_are_let_through(text: str) -> None:
    assert [problem for words in commands(text) if (problem := problem_of(words))] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = [
        link
        for link in _LINK.findall(prose)
        if "://" not in link and not link.startswith("#") and not (page.parent / link.partition("#")[0]).exists()
    ]

    assert broken == []


def test_the_pages_that_a_newcomer_goes_through_are_executed() -> None:
    executed = {page.relative_to(ROOT).as_posix() for page in pages() if script_of(page)}

    assert executed >= {"docs/tutorial.md", "docs/experiments.md"}


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(index.read_text("utf-8"))}
    alone = [
        page.relative_to(ROOT).as_posix()
        for page in (ROOT / "docs").rglob("*.md")
        if page != index and page.resolve() not in linked and page.parent.name != "decisions"
    ]

    assert alone == []


PAGE = """
```sh run
A=1
echo "a is $A" > told.txt
```
```sh
false
```
```sh run
! false
test "$(cat told.txt)" = "a is 1"
LAST
```
"""


@pytest.mark.parametrize(
    ("last", "code"),
    [
        pytest.param("true", 0, id="good"),
        pytest.param("false", 1, id="bad"),
        pytest.param("! true", 1, id="had-to-fail"),
    ],
)
def test_the_commands_of_a_page_run_in_order_in_one_shell_in_a_copy(tmp_path: Path, last: str, code: int) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("LAST", last), "utf-8")
    subprocess.run(["git", "-C", tmp_path, "add", "page.md"], check=True)

    ended, said = run_page(page, os.environ, tmp_path)

    assert (ended, said.startswith("== page.md:3\n== page.md:10\n")) == (code, True)
    assert not (tmp_path / "told.txt").exists()


READERS: dict[str, Callable[[str], object]] = {
    "python": ast.parse,
    "toml": tomllib.loads,
    "json": json.loads,
    "yaml": yaml.safe_load,
}
EXAMPLES = [block for page in pages() for block in blocks(page) if block.info[:1] and block.info[0] in READERS]


@pytest.mark.parametrize("block", EXAMPLES, ids=name_of)
def test_every_example_of_a_page_can_be_read_in_its_language(block: Block) -> None:
    assert READERS[block.info[0]](textwrap.dedent(block.text)) is not None
