"""An agent comes to be whole or not at all, is known once, and ends once for everybody who asks."""

from __future__ import annotations

import ast
import asyncio
import itertools
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

import harness
from harness.assemble import Assembled, assemble
from harness.capabilities.live_agents import AgentEntered, AgentLeft, LiveAgents, LiveNotice
from harness.errors import LogBusyError, SessionExistsError, UsageError
from harness.log.events import Cause, EndSeed, TurnEnd, TurnReason
from harness.log.store import SessionStore
from harness.loop.scope import CancelScope
from harness.loop.tools import Tool
from harness.model.messages import Message, SessionId, TextBlock, UserSource
from harness.tools.shipped import ShippedTools
from lanes.unit.assemble.place import ask, held_locks, logs, settings
from lanes.unit.loop.rig import tool
from lanes.unit.surfaces.scripted import Script, ScriptedTransport, say

PATIENCE_S = 20


class Birth:
    """Creations in one process: who entered, what setups opened and closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.live = LiveAgents()
        self.notices: list[LiveNotice] = []
        self.live.observe(self.notices.append)
        self.steps: list[str] = []
        self.reached, self.release = asyncio.Event(), asyncio.Event()

    async def make(self, *replies: Any, folder: Path | None = None, **options: Any) -> Assembled:
        transport = ScriptedTransport(Script(list(replies)))
        return await assemble(settings(folder or self.folder), transport=transport, live=self.live, **options)

    async def setup(self, stack: AsyncExitStack) -> Mapping[str, Tool]:
        """Open something, wait for the test, and give a tool."""
        self.steps.append("opened")
        stack.callback(lambda: self.steps.append("closed"))
        self.reached.set()
        await self.release.wait()
        self.steps.append("set up")
        return {"extra": tool("extra", "from outside")}

    def named(self, *ids: str) -> Any:
        """Ids that begin with these and go on by counting."""
        left, numbers = list(ids), itertools.count()
        return lambda prefix: left.pop(0) if left else f"{prefix}-{next(numbers)}"

    async def store_one(self) -> SessionId:
        """A stored session of one turn."""
        assembled = await self.make(say("stored"))
        await ask(assembled, "hello")
        await assembled.close()
        self.notices.clear()
        return assembled.agent.id


@pytest.fixture
def birth(tmp_path: Path) -> Birth:
    return Birth(tmp_path)


@pytest.fixture(scope="module")
def trees() -> Mapping[str, ast.Module]:
    """The source of every room of the harness, parsed, by path."""
    package = Path(harness.__file__).parent
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def test_G01_nothing_but_the_factory_constructs_an_agent(trees: Mapping[str, ast.Module]) -> None:
    makers = [
        name
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Agent"
    ]
    assert makers == ["assemble.py"]


async def test_G01_of_two_creations_of_one_id_one_wins_and_the_other_is_rolled_back(birth: Birth) -> None:
    for name in ("one", "other"):
        (birth.folder / name).mkdir()
    creations = [
        asyncio.ensure_future(birth.make(folder=birth.folder / name, setup=birth.setup, ids=birth.named("same")))
        for name in ("one", "other")
    ]
    await birth.reached.wait()
    birth.release.set()
    found = await asyncio.gather(*creations, return_exceptions=True)
    assert sorted(type(each).__name__ for each in found) == ["Assembled", "SessionExistsError"]
    (winner,) = [each for each in found if isinstance(each, Assembled)]
    (loser,) = [each for each in found if isinstance(each, SessionExistsError)]
    assert (loser.error_code, birth.live.get(SessionId("same"))) == ("SESSION_ALREADY_EXISTS", winner.agent)
    assert (len(held_locks(birth.folder)), birth.steps.count("closed"), len(birth.notices)) == (1, 1, 1)
    await winner.close()
    assert (held_locks(birth.folder), len(birth.live)) == ([], 0)


async def test_G01_of_two_creations_under_one_root_the_second_finds_the_id_held(birth: Birth) -> None:
    first = asyncio.ensure_future(birth.make(setup=birth.setup, ids=birth.named("same")))
    await birth.reached.wait()
    with pytest.raises(LogBusyError):
        await birth.make(ids=birth.named("same"))
    birth.release.set()
    winner = await first
    assert list(birth.live) == [winner.agent]
    await winner.close()


async def test_G02_nobody_hears_of_an_agent_before_its_setup_is_done(birth: Birth) -> None:
    creation = asyncio.ensure_future(birth.make(setup=birth.setup))
    await birth.reached.wait()
    before = (len(birth.live), list(birth.notices), logs(birth.folder))
    birth.release.set()
    assembled = await creation
    assert before == (0, [], [])
    assert birth.notices == [AgentEntered(assembled.agent, "startup")]
    await assembled.close()
    assert birth.steps == ["opened", "set up", "closed"]


async def test_G02_a_setup_that_fails_publishes_nothing_closes_what_it_opened_and_frees_the_id(birth: Birth) -> None:
    async def fail(stack: AsyncExitStack) -> Mapping[str, Tool]:
        stack.callback(lambda: birth.steps.append("closed"))
        raise RuntimeError("no server answers")

    with pytest.raises(RuntimeError, match="no server answers"):
        await birth.make(setup=fail, ids=birth.named("again"))
    assert (birth.notices, birth.steps, held_locks(birth.folder), logs(birth.folder)) == ([], ["closed"], [], [])
    assembled = await birth.make(ids=birth.named("again"))
    assert assembled.agent.id == "again"
    await assembled.close()


async def test_G02_a_cancelled_setup_is_told_waited_for_and_what_it_gives_late_is_dropped(birth: Birth) -> None:
    cancel = CancelScope()

    async def stubborn(stack: AsyncExitStack) -> Mapping[str, Tool]:
        stack.callback(lambda: birth.steps.append("closed"))
        birth.reached.set()
        try:
            await birth.release.wait()
        except asyncio.CancelledError:
            birth.steps.append("told")
        return {"late": tool("late")}

    creation = asyncio.ensure_future(birth.make(setup=stubborn, cancel=cancel, ids=birth.named("again")))
    await birth.reached.wait()
    cancel.cancel(Cause("user"))
    with pytest.raises(UsageError) as raised:
        await creation
    assert (raised.value.error_code, birth.steps, birth.notices) == ("CREATION_CANCELLED", ["told", "closed"], [])
    assert held_locks(birth.folder) == []
    await (await birth.make(ids=birth.named("again"))).close()


async def test_G02_a_cancelled_resume_publishes_nothing_and_leaves_the_file_as_it_was(
    birth: Birth, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it end what an earlier lifetime left running: that still belongs to a session nobody took over."""
    session = await birth.store_one()
    (path,) = logs(birth.folder)
    before = path.read_bytes()
    cancel = CancelScope()
    loads = SessionStore.resume

    async def load_and_be_cancelled(store: SessionStore, session_id: SessionId) -> Any:
        writer = await loads(store, session_id)
        cancel.cancel(Cause("user"))
        return writer

    async def end_leftovers(tools: ShippedTools) -> None:
        birth.steps.append("ended leftovers")

    monkeypatch.setattr(SessionStore, "resume", load_and_be_cancelled)
    monkeypatch.setattr(ShippedTools, "end_leftovers", end_leftovers)
    with pytest.raises(UsageError) as raised:
        await birth.make(resume=session, cancel=cancel)
    assert (raised.value.error_code, birth.notices, len(birth.live)) == ("CREATION_CANCELLED", [], 0)
    assert (path.read_bytes() == before, held_locks(birth.folder), birth.steps) == (True, [], [])
    monkeypatch.undo()
    resumed = await birth.make(resume=session)
    assert birth.notices == [AgentEntered(resumed.agent, "resume")]
    await resumed.close()


async def test_G02_a_host_that_gives_up_a_resume_gets_the_hold_back_although_a_thread_was_at_work(
    birth: Birth, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await birth.store_one()
    opens, loop = SessionStore._open_stored, asyncio.get_running_loop()
    release, done = threading.Event(), asyncio.Event()

    def slow(store: SessionStore, session_id: SessionId) -> Any:
        loop.call_soon_threadsafe(birth.reached.set)
        release.wait(PATIENCE_S)
        try:
            return opens(store, session_id)
        finally:
            loop.call_soon_threadsafe(done.set)

    monkeypatch.setattr(SessionStore, "_open_stored", slow)
    creation = asyncio.ensure_future(birth.make(resume=session))
    await birth.reached.wait()
    creation.cancel()
    await asyncio.sleep(0)
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await creation
    await done.wait()
    assert (birth.notices, held_locks(birth.folder)) == ([], [])


async def test_G02_a_cancel_in_the_last_wait_before_the_agent_is_known_still_publishes_nothing(
    birth: Birth, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, cancel = await birth.store_one(), CancelScope()

    async def end_leftovers(tools: ShippedTools) -> None:
        cancel.cancel(Cause("user"))

    monkeypatch.setattr(ShippedTools, "end_leftovers", end_leftovers)
    with pytest.raises(UsageError, match="cancelled before it began"):
        await birth.make(resume=session, cancel=cancel)
    assert (birth.notices, held_locks(birth.folder)) == ([], [])


async def test_G02_a_creation_cancelled_before_it_began_opens_nothing(birth: Birth) -> None:
    cancel = CancelScope()
    cancel.cancel(Cause("user"))
    with pytest.raises(UsageError):
        await birth.make(cancel=cancel)
    assert not (birth.folder / "sessions").exists()


async def test_G02_the_creations_cancel_has_no_power_over_a_published_agent(birth: Birth) -> None:
    cancel = CancelScope()
    assembled = await birth.make(say("fine"), cancel=cancel)
    cancel.cancel(Cause("user"))
    await ask(assembled, "still there?")
    ends = [event.payload.reason for event in assembled.agent.log if isinstance(event.payload, TurnEnd)]
    assert ends == [TurnReason("completed")]
    await assembled.close()


async def test_G02_a_failed_resume_writes_no_mark(birth: Birth) -> None:
    session = await birth.store_one()

    async def fail(stack: AsyncExitStack) -> Mapping[str, Tool]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        await birth.make(resume=session, setup=fail)
    found = SessionStore(birth.folder / "sessions", clock=lambda: 0).inspect(session)
    assert not any(isinstance(event.payload, EndSeed) for event in found.events)


async def test_a_tool_of_setup_is_offered_and_one_of_a_taken_name_is_refused(birth: Birth) -> None:
    birth.release.set()
    assembled = await birth.make(setup=birth.setup)
    await assembled.close()

    async def clash(stack: AsyncExitStack) -> Mapping[str, Tool]:
        return {"shell": tool("shell")}

    with pytest.raises(UsageError, match="there is a tool 'shell' already"):
        await birth.make(setup=clash)
    assert held_locks(birth.folder) == []


async def test_G03_closing_twice_at_once_is_one_end_and_leaves_the_registry_before_the_log_is_let_go(
    birth: Birth,
) -> None:
    held = asyncio.Event()

    async def hold() -> None:
        held.set()
        await asyncio.Event().wait()

    assembled = await assemble(
        settings(birth.folder), transport=ScriptedTransport(Script([say("half", hold=1)]), hold), live=birth.live
    )
    while_leaving: list[tuple[list[TurnReason], bool]] = []

    def on_notice(notice: LiveNotice) -> None:
        if isinstance(notice, AgentLeft):
            ends = [event.payload.reason for event in assembled.agent.log if isinstance(event.payload, TurnEnd)]
            while_leaving.append((ends, assembled.writer.durable_seq == len(assembled.agent.log) - 1))

    birth.live.observe(on_notice)
    assembled.agent.followup(Message(assembled.new_message_id(), "user", (TextBlock("go"),), UserSource()))
    await held.wait()

    async def close() -> tuple[tuple[str, ...], list[str]]:
        return await assembled.close(), held_locks(birth.folder)

    with anyio.fail_after(PATIENCE_S):
        closed = await asyncio.gather(close(), close(), return_exceptions=True)
    assert while_leaving == [([TurnReason("aborted", Cause("disposed"))], True)]
    assert [*closed, await close()] == [((), [])] * 3
    assert len(birth.live) == 0


async def test_G03_a_closer_that_is_cancelled_leaves_the_end_to_the_others(birth: Birth) -> None:
    assembled = await birth.make()
    first = asyncio.ensure_future(assembled.close())
    await asyncio.sleep(0)
    first.cancel()
    await assembled.close()
    assert (first.cancelled(), held_locks(birth.folder)) == (True, [])


async def test_G07_two_processes_worth_of_agents_know_nothing_of_each_other(birth: Birth, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Birth(tmp_path / "other")
    here, there = await birth.make(ids=birth.named("same")), await other.make(ids=other.named("same"))
    assert (list(birth.live), list(other.live)) == ([here.agent], [there.agent])
    assert [len(birth.notices), len(other.notices)] == [1, 1]
    await here.close()
    assert list(other.live) == [there.agent]
    await there.close()


def test_G07_no_room_of_the_harness_holds_anything_that_is_filled_later(trees: Mapping[str, ast.Module]) -> None:
    memo_of_types = "log/frozen.py"  # which fields a payload type has is the same for every session
    found: list[str] = []
    for name, tree in trees.items():
        kept = [node for node in tree.body if _is_filled_later(node)]
        kept += [node for node in ast.walk(tree) if isinstance(node, ast.Global)]
        found.extend(f"{name}: {ast.unparse(node)[:60]}" for node in kept)
    assert [line for line in found if not line.startswith(memo_of_types)] == []


def _is_filled_later(statement: ast.stmt) -> bool:
    """Whether a room's own statement makes an empty container, a counter or a context variable."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    empty = ("[]", "{}", "set()", "list()", "dict()", "deque()", "defaultdict(", "count(", "itertools.count(")
    return ast.unparse(statement.value).startswith((*empty, "ContextVar(", "contextvars.", "WeakValueDictionary("))


async def test_an_observer_of_live_agents_that_raises_stops_nobody(birth: Birth) -> None:
    def fail(notice: object) -> None:
        raise ValueError("observer")

    detach = birth.live.observe(fail)
    assembled = await birth.make()
    detach()
    detach()
    await assembled.close()
    assert [str(error) for error in birth.live.failures] == ["observer"]
    assert [type(notice) for notice in birth.notices] == [AgentEntered, AgentLeft]
