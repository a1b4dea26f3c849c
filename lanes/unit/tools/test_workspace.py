"""No path leads out of the workspace, and nothing that is not a plain file is opened as one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.loop.tools import ToolOutput
from harness.tools.shipped import build_tools
from harness.tools.workspace import Place, ToolError, Workspace


@pytest.fixture
def workspace(root: Path, spill: Path) -> Workspace:
    (root / "inside").mkdir()
    (root / "inside" / "a.txt").write_text("a", encoding="utf-8")
    (root.parent / "outside.txt").write_text("secret", encoding="utf-8")
    (root.parent / f"{root.name}-next").mkdir()
    (root / "link-out").symlink_to(root.parent / "outside.txt")
    (root / "link-up").symlink_to("..")
    (root / "link-in").symlink_to("inside/a.txt")
    (root / "link-loop").symlink_to("link-loop")
    (root / "link-next").symlink_to(root.parent / f"{root.name}-next")
    return Workspace(root, spill_dir=spill)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param("../outside.txt", "PATH_OUTSIDE", id="parent"),
        pytest.param("inside/../../outside.txt", "PATH_OUTSIDE", id="parent-in-the-middle"),
        pytest.param("/etc/passwd", "PATH_OUTSIDE", id="absolute"),
        pytest.param("link-out", "PATH_OUTSIDE", id="link-to-a-file-outside"),
        pytest.param("link-up/outside.txt", "PATH_OUTSIDE", id="link-to-a-folder-outside"),
        pytest.param("link-up/new/file.txt", "PATH_OUTSIDE", id="new-file-behind-a-link-outside"),
        pytest.param("link-next/secret.txt", "PATH_OUTSIDE", id="folder-whose-name-begins-like-ours"),
        pytest.param("@output/../outside.txt", "PATH_OUTSIDE", id="out-of-the-spilled-outputs"),
        pytest.param("", "PATH_INVALID", id="empty"),
        pytest.param("a\0b", "PATH_INVALID", id="nul"),
        pytest.param("a\ud800b", "PATH_INVALID", id="lone-surrogate"),
    ],
)
def test_a_path_that_leads_outside_or_nowhere_is_refused(path: str, code: str, workspace: Workspace) -> None:
    with pytest.raises(ToolError) as raised:
        workspace.place(path)
    assert raised.value.error_code == code


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("inside/a.txt", "inside/a.txt", id="plain"),
        pytest.param("./inside//../inside/a.txt", "inside/a.txt", id="roundabout"),
        pytest.param("link-in", "inside/a.txt", id="link-inside"),
        pytest.param("new/deep/file", "new/deep/file", id="not-there-yet"),
        pytest.param(".", ".", id="the-folder-itself"),
        pytest.param("@output/call-1.txt", "@output/call-1.txt", id="spilled-output"),
    ],
)
def test_a_path_inside_is_named_relative_to_the_workspace(path: str, shown: str, workspace: Workspace) -> None:
    assert workspace.place(path).shown == shown


def test_an_absolute_path_inside_is_taken_and_named_relative(root: Path, workspace: Workspace) -> None:
    assert workspace.place(str(root / "inside" / "a.txt")).shown == "inside/a.txt"


def test_a_workspace_reached_through_a_link_is_still_the_same_folder(root: Path, spill: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    (root / "a.txt").write_text("a", encoding="utf-8")
    workspace = Workspace(alias, spill_dir=spill)
    assert workspace.place(str(alias / "a.txt")).shown == "a.txt"


def test_spilled_outputs_cannot_be_written(workspace: Workspace) -> None:
    with pytest.raises(ToolError) as raised:
        workspace.place("@output/call-1.txt", writing=True)
    assert raised.value.error_code == "PATH_OUTSIDE"


@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_link_swapped_in_after_the_check_leads_nowhere(swapped: str, root: Path, workspace: Workspace) -> None:
    place = workspace.place("inside/a.txt")
    if swapped == "file":
        (root / "inside" / "a.txt").unlink()
        (root / "inside" / "a.txt").symlink_to(root.parent / "outside.txt")
    else:
        (root / "inside").rename(root / "moved")
        (root.parent / "a.txt").write_text("secret", encoding="utf-8")
        (root / "inside").symlink_to("..")
    with pytest.raises(ToolError):
        workspace.read(place, limit_bytes=100)
    with pytest.raises(ToolError):
        workspace.write(place, b"changed")
    assert (root.parent / "outside.txt").read_text(encoding="utf-8") == "secret"


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_not_a_regular_file_is_neither_read_nor_replaced(kind: str, root: Path, workspace: Workspace) -> None:
    if kind == "folder":
        (root / "thing").mkdir()
    else:
        os.mkfifo(root / "thing")
    place = workspace.place("thing")
    codes = []
    for act in (lambda: workspace.read(place, limit_bytes=100), lambda: workspace.write(place, b"x")):
        with pytest.raises(ToolError) as raised:
            act()
        codes.append(raised.value.error_code)
    assert codes == ["NOT_A_FILE", "NOT_A_FILE"]


def test_a_failed_write_leaves_the_old_content_and_no_draft(
    root: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("harness.tools.workspace.os.replace", refuse)
    with pytest.raises(ToolError, match=r"inside/a\.txt: no space left on device"):
        workspace.write(workspace.place("inside/a.txt"), b"new")
    content = (root / "inside" / "a.txt").read_text(encoding="utf-8")
    assert (content, [path.name for path in (root / "inside").iterdir()]) == ("a", ["a.txt"])


def test_a_replaced_file_keeps_its_mode(root: Path, workspace: Workspace) -> None:
    script = root / "inside" / "a.txt"
    script.chmod(0o755)
    workspace.write(workspace.place("inside/a.txt"), b"new")
    assert (oct(script.stat().st_mode & 0o777), script.read_bytes()) == ("0o755", b"new")


def test_a_file_changed_since_it_was_read_is_not_overwritten(root: Path, workspace: Workspace) -> None:
    place: Place = workspace.place("inside/a.txt")
    _, identity = workspace.read_with_identity(place, limit_bytes=100)
    (root / "inside" / "a.txt").write_text("by someone else", encoding="utf-8")
    with pytest.raises(ToolError) as raised:
        workspace.write(place, b"mine", expected=identity)
    content = (root / "inside" / "a.txt").read_text(encoding="utf-8")
    assert (raised.value.error_code, content) == ("EDIT_CONFLICT", "by someone else")


def test_a_workspace_that_is_no_folder_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        build_tools(tmp_path / "missing", spill_dir=tmp_path, environment={})


async def test_no_result_holds_an_absolute_path(
    root: Path, call: Any, text_of_output: Callable[[ToolOutput], str]
) -> None:
    texts = [
        text_of_output(await call(name, arguments))
        for name, arguments in [
            ("read_file", {"path": str(root / "missing.txt")}),
            ("write_file", {"path": str(root / "new.txt"), "content": "x"}),
            ("edit_file", {"path": str(root / "new.txt"), "old": "y", "new": "z"}),
            ("list_files", {"path": str(root)}),
            ("search_files", {"pattern": "x", "path": str(root)}),
            ("read_file", {"path": "../outside.txt"}),
        ]
    ]
    assert [text for text in texts if str(root.parent) in text] == []
