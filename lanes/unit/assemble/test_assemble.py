"""The one factory builds everything or leaves nothing open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.assemble import assemble
from harness.capabilities.instructions import SECTIONS
from harness.errors import SessionNotFoundError, UsageError
from harness.loop.scope import CancelScope
from harness.loop.tools import ToolContext
from harness.model.messages import CallId
from harness.settings import Settings
from harness.tools.processes import command_line
from lanes.unit.assemble.place import held_locks, logs, settings


class Refused(httpx.AsyncBaseTransport):
    """No test here asks a model."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise AssertionError("a model was asked")


async def make(given: Settings, **options: Any) -> Any:
    return await assemble(given, transport=Refused(), **options)


async def test_a_new_session_has_a_fresh_id_and_its_folder_in_the_header(tmp_path: Path) -> None:
    first, second = await make(settings(tmp_path)), await make(settings(tmp_path))
    headers = [assembled.writer.log.header for assembled in (first, second)]
    for assembled in (first, second):
        await assembled.close()
    assert (headers[0].id != headers[1].id, headers[0].cwd) == (True, str(tmp_path / "work"))


async def test_an_agent_that_was_never_asked_leaves_no_log(tmp_path: Path) -> None:
    assembled = await make(settings(tmp_path))
    assert len(held_locks(tmp_path)) == 1
    await assembled.close()
    assert (logs(tmp_path), held_locks(tmp_path)) == ([], [])


@pytest.mark.parametrize(
    ("environ", "flags", "code"),
    [
        pytest.param({}, {"base_url": "https://api.example.com/v1"}, "USAGE", id="no-key"),
        pytest.param({}, {"base_url": "not a url"}, "BASE_URL", id="no-url"),
        pytest.param({"HARNESS_ALLOWED_HOSTS": "none.invalid"}, {}, "ENDPOINT_REFUSED", id="host-not-allowed"),
    ],
)
async def test_a_route_that_cannot_work_is_refused_before_a_session_is_opened(
    environ: dict[str, str], flags: dict[str, Any], code: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as raised:
        await make(settings(tmp_path, environ, **flags))
    assert (raised.value.error_code, (tmp_path / "sessions").exists()) == (code, False)


async def test_a_missing_key_is_named_by_its_variable_and_a_server_on_this_machine_needs_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        await make(settings(tmp_path, provider="deepseek", base_url="https://api.deepseek.com/v1"))
    assert raised.value.where == "DEEPSEEK_API_KEY"
    for url in ("http://127.0.0.1:9", "http://127.8.8.8:9/v1", "http://[::1]:9/v1", "http://localhost:9/v1"):
        await (await make(settings(tmp_path, base_url=url))).close()


async def test_a_resume_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFoundError):
        await make(settings(tmp_path), resume="nope")
    assert (logs(tmp_path), held_locks(tmp_path)) == ([], [])


async def test_a_failure_after_the_session_was_opened_lets_go_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise UsageError("no tools today")

    monkeypatch.setattr("harness.assemble.build_tools", fail)
    with pytest.raises(UsageError, match="no tools today"):
        await make(settings(tmp_path))
    assert (logs(tmp_path), held_locks(tmp_path)) == ([], [])


async def test_the_given_clock_and_ids_are_the_only_ones(tmp_path: Path) -> None:
    assembled = await make(settings(tmp_path), clock=lambda: 41, ids=lambda prefix: f"{prefix}-given")
    header = assembled.writer.log.header
    message_id = assembled.new_message_id()
    await assembled.close()
    assert (header.id, header.created_at, message_id) == ("session-given", 41, "message-given")


async def test_a_seed_gives_the_same_ids_again_and_other_ones_to_another_seed(tmp_path: Path) -> None:
    async def ids(seed: str, name: str) -> tuple[str, int, str]:
        (tmp_path / name).mkdir()
        assembled = await make(settings(tmp_path / name, {"HARNESS_SEED": seed}))
        found = assembled.writer.log.header.id, assembled.writer.log.header.created_at, assembled.new_message_id()
        await assembled.close()
        return found

    first, second, other = await ids("s", "a"), await ids("s", "b"), await ids("t", "c")
    assert (first == second, first[1], len({*first[::2], *other[::2]})) == (True, 1_700_000_000_000, 4)


def test_the_system_text_names_no_place_and_no_day() -> None:
    import re

    texts = " ".join(section.text for section in SECTIONS if isinstance(section.text, str))
    assert re.findall(r"(?<!\w)/\w|\b(?:19|20)\d\d\b|today", texts) == []


async def test_closing_ends_everything_also_when_the_agent_cannot_be_disposed(tmp_path: Path) -> None:
    assembled = await make(settings(tmp_path))

    async def fail() -> None:
        raise RuntimeError("dispose failed")

    assembled.agent.dispose = fail
    context = ToolContext(CallId("call"), CancelScope())
    await assembled.tools.tools["shell"].run({"command": "sleep 44.401 & echo $! > pid"}, context)
    with pytest.raises(RuntimeError, match="dispose failed"):
        await assembled.close()
    pid = int(text_of(tmp_path / "work" / "pid"))
    assert (command_line(pid), held_locks(tmp_path)) == ("", [])


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")
