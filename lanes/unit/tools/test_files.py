"""What the file tools answer and what they leave on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.loop.tools import ToolOutput
from harness.tools.shipped import ShippedTools

TextOf = Callable[[ToolOutput], str]


def put(root: Path, name: str, content: str | bytes) -> None:
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_bytes(data)


def content_of(root: Path, name: str) -> bytes:
    return (root / name).read_bytes()


def test_only_tools_that_change_nothing_are_read_only(shipped: ShippedTools) -> None:
    read_only = {
        name for name, tool in shipped.tools.items() if tool.is_read_only is not None and tool.is_read_only({}) is True
    }
    assert (read_only, set(shipped.tools)) == (
        {"read_file", "list_files", "search_files"},
        {"read_file", "write_file", "edit_file", "list_files", "search_files", "shell"},
    )


@pytest.mark.parametrize("content", ["", "a", "a\n", "a\r\nb\r\n", "\ufeffa\n", "é€😀\n", "a\u2028b\x85c\n"], ids=ascii)
async def test_read_gives_the_exact_text_of_a_short_file(
    content: str, root: Path, call: Any, text_of_output: TextOf
) -> None:
    put(root, "f.txt", content)
    output = await call("read_file", {"path": "f.txt"})
    assert text_of_output(output) == (content or "[f.txt is empty]")


async def test_read_gives_a_part_and_says_how_to_read_on(root: Path, call: Any, text_of_output: TextOf) -> None:
    put(root, "f.txt", "".join(f"line {n}\n" for n in range(1, 8)))
    texts = [
        text_of_output(await call("read_file", {"path": "f.txt", **part}))
        for part in ({"offset": 2, "limit": 2}, {"offset": 6}, {"limit": 7}, {"offset": 7, "limit": 1})
    ]
    assert texts == [
        "line 2\nline 3\n[lines 2 to 3 of 7; read on with offset 4]",
        "line 6\nline 7\n[lines 6 to 7 of 7]",
        "".join(f"line {n}\n" for n in range(1, 8)),
        "line 7\n[lines 7 to 7 of 7]",
    ]


async def test_read_cuts_a_file_of_many_or_long_lines(root: Path, call: Any, text_of_output: TextOf) -> None:
    put(root, "many.txt", "x\n" * 5000)
    put(root, "long.txt", "y" * 100_000)
    many = text_of_output(await call("read_file", {"path": "many.txt"}))
    long = text_of_output(await call("read_file", {"path": "long.txt"}))
    assert many == "x\n" * 2000 + "[lines 1 to 2000 of 5000; read on with offset 2001]"
    assert long == "y" * 60_000 + "\n[line 1 has 100000 characters, the first 60000 are shown]"


async def test_read_shows_control_characters_and_says_so(root: Path, call: Any, text_of_output: TextOf) -> None:
    put(root, "f.txt", "\x1b[31mred\n")
    output = await call("read_file", {"path": "f.txt"})
    assert text_of_output(output) == "\\x1b[31mred\n[control characters are shown as \\xNN]"


@pytest.mark.parametrize("content", [b"a\0b", b"\xff\xfe", b"a\xc3"], ids=["nul", "not-utf-8", "cut-character"])
async def test_read_of_a_binary_file_gives_its_size(
    content: bytes, root: Path, call: Any, text_of_output: TextOf
) -> None:
    put(root, "f.bin", content)
    output = await call("read_file", {"path": "f.bin"})
    expected = f"f.bin is a binary file of {len(content)} bytes; its content is not shown"
    assert (output.is_error, text_of_output(output)) == (False, expected)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "missing.txt"}, "PATH_MISSING"),
        ({"path": "folder"}, "NOT_A_FILE"),
        ({"path": "."}, "NOT_A_FILE"),
        ({"path": "f.txt/below"}, "FILE_FAILED"),
        ({"path": "f.txt", "offset": 9}, "INVALID_ARGS"),
    ],
    ids=["missing", "folder", "the-workspace", "below-a-file", "past-the-end"],
)
async def test_read_says_what_is_wrong(
    arguments: dict[str, Any], code: str, root: Path, call: Any, text_of_output: TextOf
) -> None:
    put(root, "folder/x", "x")
    put(root, "f.txt", "one\n")
    output = await call("read_file", arguments)
    assert (output.is_error, output.code, text_of_output(output).startswith("Error: ")) == (True, code, True)


async def test_write_creates_folders_and_replaces_whole_files(root: Path, call: Any, text_of_output: TextOf) -> None:
    first = await call("write_file", {"path": "a/b/c.txt", "content": "one\r\nzwei €"})
    second = await call("write_file", {"path": "a/b/c.txt", "content": "x"})
    assert (text_of_output(first), text_of_output(second), content_of(root, "a/b/c.txt")) == (
        "created a/b/c.txt, 13 bytes",
        "replaced a/b/c.txt, 1 bytes",
        b"x",
    )


async def test_case_B16_write_of_half_a_character_is_an_error_and_writes_nothing(root: Path, call: Any) -> None:
    put(root, "f.txt", "old")
    output = await call("write_file", {"path": "f.txt", "content": "a\ud800b"})
    assert (output.is_error, output.code, content_of(root, "f.txt")) == (True, "INVALID_ARGS", b"old")


async def test_edit_replaces_the_only_occurrence_and_keeps_every_other_byte(
    root: Path, call: Any, text_of_output: TextOf
) -> None:
    put(root, "f.txt", "\ufeffone\r\ntwo\r\nthree")
    output = await call("edit_file", {"path": "f.txt", "old": "two", "new": "2\n2"})
    assert (text_of_output(output), content_of(root, "f.txt")) == (
        "edited f.txt at line 2",
        "\ufeffone\r\n2\n2\r\nthree".encode(),
    )


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        pytest.param("zero", "0", "EDIT_NOT_FOUND", "does not occur", id="nowhere"),
        pytest.param("one", "1", "EDIT_AMBIGUOUS", "occurs 2 times, at lines 1, 3", id="twice"),
        pytest.param("aa", "b", "EDIT_AMBIGUOUS", "occurs 2 times", id="overlapping"),
        pytest.param("if  x:\n    y", "z", "EDIT_NOT_FOUND", "white space of line 5", id="other-white-space"),
        pytest.param("", "x", "INVALID_ARGS", "old is empty", id="empty"),
        pytest.param("two", "two", "INVALID_ARGS", "same text", id="no-change"),
        pytest.param("two", "\ud800", "INVALID_ARGS", "half a character", id="lone-surrogate"),
    ],
)
async def test_edit_that_does_not_fit_exactly_once_changes_nothing(
    old: str, new: str, code: str, says: str, root: Path, call: Any, text_of_output: TextOf
) -> None:
    content = "one\ntwo\none\naaa\nif x:\n\ty\n"
    put(root, "f.txt", content)
    output = await call("edit_file", {"path": "f.txt", "old": old, "new": new})
    text = text_of_output(output)
    assert (output.code, says in text, content_of(root, "f.txt")) == (code, True, content.encode()), text


async def test_edit_tells_of_other_line_ends(root: Path, call: Any, text_of_output: TextOf) -> None:
    put(root, "f.txt", "a\r\nb\r\n")
    output = await call("edit_file", {"path": "f.txt", "old": "a\nb", "new": "c"})
    assert "expected: line ends \\r\\n" in text_of_output(output)


async def test_edit_of_a_binary_file_is_refused(root: Path, call: Any) -> None:
    put(root, "f.bin", b"a\0b")
    output = await call("edit_file", {"path": "f.bin", "old": "a", "new": "b"})
    assert (output.code, content_of(root, "f.bin")) == ("EDIT_BINARY", b"a\0b")


async def test_edit_through_a_link_changes_the_file_and_keeps_the_link(root: Path, call: Any) -> None:
    put(root, "real.txt", "one")
    link(root, "link.txt", "real.txt")
    await call("edit_file", {"path": "link.txt", "old": "one", "new": "two"})
    assert (content_of(root, "real.txt"), is_link(root, "link.txt")) == (b"two", True)


def link(root: Path, name: str, target: str) -> None:
    (root / name).symlink_to(target)


def is_link(root: Path, name: str) -> bool:
    return (root / name).is_symlink()


async def test_list_shows_everything_below_in_a_fixed_order_and_follows_no_link(
    root: Path, call: Any, text_of_output: TextOf
) -> None:
    for name in ("b.txt", "a/2", "a/10", "B/x", ".hidden", ".git/config", "node_modules/m/i.js"):
        put(root, name, "x")
    link(root, "up", "..")
    assert text_of_output(await call("list_files", {})) == "\n".join(
        [
            ".git/  (not entered)",
            ".hidden",
            "B/",
            "B/x",
            "a/",
            "a/10",
            "a/2",
            "b.txt",
            "node_modules/  (not entered)",
            "up  (link)",
        ]
    )
    assert text_of_output(await call("list_files", {"path": "a"})) == "a/10\na/2"


async def test_list_of_an_empty_a_large_and_an_oddly_named_folder(
    root: Path, call: Any, text_of_output: TextOf
) -> None:
    empty = text_of_output(await call("list_files", {}))
    put(root, "odd/" + b"n\xff\n".decode("utf-8", "surrogateescape"), "x")
    odd = text_of_output(await call("list_files", {"path": "odd"}))
    for number in range(1100):
        put(root, f"many/{number:04}", "")
    many = text_of_output(await call("list_files", {"path": "many"})).split("\n")
    assert (empty, odd) == ("[the folder is empty]", "odd/n\\xff\\x0a")
    assert (len(many), many[0], many[-1]) == (
        1001,
        "many/0000",
        "[the first 1000 entries; give a path below to see more]",
    )


async def test_list_stops_at_a_depth_no_project_has(root: Path, call: Any, text_of_output: TextOf) -> None:
    deep(root, 150)
    lines = text_of_output(await call("list_files", {})).split("\n")
    assert (len(lines), lines[-1].endswith("/  (not entered)")) == (101, True)


def deep(root: Path, levels: int) -> None:
    (root / "/".join("d" * levels)).mkdir(parents=True)


async def test_search_gives_path_line_and_text(root: Path, call: Any, text_of_output: TextOf) -> None:
    put(root, "a.py", "def f():\r\n    return needle\r\n")
    put(root, "sub/b.py", "needle\nother\nneedle\n")
    put(root, ".git/c", "needle\n")
    link(root, "z-link.py", "a.py")
    texts = [
        text_of_output(await call("search_files", arguments))
        for arguments in (
            {"pattern": "needle"},
            {"pattern": "needle", "path": "sub"},
            {"pattern": "needle", "path": "a.py"},
            {"pattern": "need.e"},
        )
    ]
    assert texts == [
        "a.py:2:     return needle\nsub/b.py:1: needle\nsub/b.py:3: needle",
        "sub/b.py:1: needle\nsub/b.py:3: needle",
        "a.py:2:     return needle",
        "[no match]",
    ]


async def test_search_cuts_many_matches_and_long_lines(root: Path, call: Any, text_of_output: TextOf) -> None:
    put(root, "many.txt", "needle\n" * 500)
    put(root, "long/min.js", "needle" * 1000)
    many = text_of_output(await call("search_files", {"pattern": "needle", "path": "many.txt"})).split("\n")
    long = text_of_output(await call("search_files", {"pattern": "needle", "path": "long"}))
    assert (len(many), many[-1]) == (201, "[the first 200 matches; give a path or a longer pattern to see others]")
    assert long == f"long/min.js:1: {'needle' * 50}… [6000 characters]"


async def test_search_stops_when_cancelled(root: Path, call: Any, new_cancel: Any) -> None:
    put(root, "a.txt", "needle")
    cancel = new_cancel()
    cancel.cancel()
    output = await call("search_files", {"pattern": "needle"}, cancel=cancel)
    assert (output.is_error, output.code) == (True, "ABORTED")


@pytest.mark.parametrize("pattern", ["", "a\nb"], ids=["empty", "two-lines"])
async def test_search_refuses_a_pattern_no_line_can_hold(pattern: str, call: Any) -> None:
    output = await call("search_files", {"pattern": pattern})
    assert (output.is_error, output.code) == (True, "INVALID_ARGS")


B16 = json.loads((Path(__file__).parents[2] / "cases/logs/B16-strings.json").read_bytes())


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


ODD_NAMES = [
    pytest.param(b"two\nlines.txt", "two\\x0alines.txt", id="newline"),
    pytest.param(b"a\tb\rc.txt", "a\\x09b\\x0dc.txt", id="tab-and-return"),
    pytest.param(b"\x1b[31m.txt", "\\x1b[31m.txt", id="escape"),
    pytest.param(bytes.fromhex(B16["file_name_bytes_hex"]), "caf\\xe9.txt", id="bytes-of-the-case"),
    pytest.param(b"new\n/\xff\n", "new\\x0a/\\xff\\x0a", id="folder-too"),
]


@pytest.mark.parametrize(("name", "shown"), ODD_NAMES)
async def test_case_B16_a_name_of_any_bytes_is_listed_in_one_line_and_opened_by_it(
    name: bytes, shown: str, root: Path, call: Any, text_of_output: TextOf
) -> None:
    put(root, os.fsdecode(name), "content\n")
    listed = text_of_output(await call("list_files", {})).split("\n")
    assert listed[-1] == shown
    assert text_of_output(await call("search_files", {"pattern": "tent"})) == f"{shown}:1: content"
    for given in (shown, os.fsdecode(name)):
        assert text_of_output(await call("read_file", {"path": given})) == "content\n"
    edit = {"path": shown, "old": "content", "new": "changed"}
    assert not (await call("edit_file", edit)).is_error
    assert content_of(root, os.fsdecode(name)) == b"changed\n"


async def test_a_file_whose_name_is_what_another_is_shown_as_is_itself(
    root: Path, call: Any, text_of_output: TextOf
) -> None:
    put(root, "a\nb", "newline")
    put(root, "a\\x0ab", "backslash")
    found = [text_of_output(await call("read_file", {"path": path})) for path in ("a\\x0ab", "a\nb")]
    assert found == ["backslash", "newline"]


async def test_no_file_is_made_whose_name_breaks_a_line_and_none_is_reached_by_a_spelled_separator(
    root: Path, call: Any
) -> None:
    (root.parent / "secret").write_text("x")
    made = await call("write_file", {"path": "new\nfile", "content": "x"})
    out = await call("read_file", {"path": "..\\x2fsecret"})
    out_again = await call("read_file", {"path": "../secret\\x0a"})
    assert (made.code, out.code, out_again.code) == ("PATH_INVALID", "PATH_MISSING", "PATH_OUTSIDE")
    assert names_in(root) == []


HIDDEN = "TOKEN=[key removed]\n"  # what a model is shown of a file that holds a secret


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("write_file", {"content": f"A=2\n{HIDDEN}"}, id="write"),
        pytest.param("edit_file", {"old": "A=1\n", "new": f"A=2\n{HIDDEN}"}, id="edit"),
    ],
)
async def test_S12_what_stands_for_a_secret_does_not_take_its_place_in_a_file(
    name: str, arguments: dict[str, str], root: Path, call: Any
) -> None:
    put(root, "a.env", "A=1\nTOKEN=canary-0417\n")
    refused = await call(name, {"path": "a.env", **arguments})
    edited = await call("edit_file", {"path": "a.env", "old": "A=1", "new": "A=2"})
    assert (refused.code, edited.code) == ("EDIT_SECRET", None)
    assert content_of(root, "a.env") == b"A=2\nTOKEN=canary-0417\n"


async def test_a_file_may_hold_these_words_where_no_secret_is_at_stake(root: Path, call: Any) -> None:
    put(root, "has.md", HIDDEN)
    outputs = [
        await call("write_file", {"path": "new.md", "content": HIDDEN}),
        await call("write_file", {"path": "has.md", "content": f"# more\n{HIDDEN}"}),
        await call("edit_file", {"path": "has.md", "old": "# more", "new": f"# {HIDDEN}"}),
    ]
    assert [output.is_error for output in outputs] == [False, False, False]
