"""Cancel scopes and waits that listen to them."""

from __future__ import annotations

import asyncio

import pytest

from harness.log.events import Cause
from harness.loop.scope import CancelScope, pause, settle, stop_of

USER = Cause("user")


def test_C05_the_first_cause_stands() -> None:
    scope = CancelScope()
    assert (scope.cancelled, scope.cause, stop_of(scope)) == (False, None, None)
    assert (scope.cancel(USER), scope.cancel(Cause("disposed"))) == (True, False)
    assert (scope.cancelled, scope.cause) == (True, USER)


def test_a_listener_hears_the_first_cancel_once_and_a_late_one_at_once() -> None:
    scope, heard = CancelScope(), []
    scope.on_cancel(lambda: heard.append("early"))
    detach = scope.on_cancel(lambda: heard.append("detached"))
    detach()
    detach()
    scope.cancel(USER)
    scope.cancel(USER)
    scope.on_cancel(lambda: heard.append("late"))()
    assert heard == ["early", "late"]


async def test_waiting_ends_with_the_cancel_and_at_once_after_it() -> None:
    scope = CancelScope()
    waiting = asyncio.ensure_future(scope.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    scope.cancel(USER)
    await waiting
    await scope.wait()


async def test_C09_a_pause_is_cut_by_a_cancel_and_its_sleep_ended() -> None:
    scope, ended = CancelScope(), asyncio.Event()

    async def sleep(delay_s: float) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    pausing = asyncio.ensure_future(pause(sleep, 3600, scope))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    scope.cancel(USER)
    for _ in range(10):
        await asyncio.sleep(0)
    assert (pausing.done(), ended.is_set()) == (True, True)
    await pausing


async def test_a_pause_ends_with_its_sleep_and_is_skipped_when_cancelled_before() -> None:
    slept: list[float] = []

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    scope = CancelScope()
    await pause(sleep, 1.5, scope)
    scope.cancel(USER)
    await pause(sleep, 2.5, scope)
    assert slept == [1.5]


async def test_a_pause_passes_on_what_its_sleep_raises() -> None:
    async def sleep(delay_s: float) -> None:
        raise OSError("no clock")

    with pytest.raises(OSError, match="no clock"):
        await pause(sleep, 1, CancelScope())


async def test_settle_outlasts_a_cancelled_waiter_and_tells_the_tasks() -> None:
    scope = CancelScope()

    async def work() -> str:
        await scope.wait()
        return "closed"

    task = asyncio.ensure_future(work())
    waiter = asyncio.ensure_future(settle((task,), scope))
    await asyncio.sleep(0)
    waiter.cancel()
    await waiter
    assert (task.result(), scope.cause) == ("closed", Cause("disposed"))


async def test_settle_of_nothing_and_of_the_first_return() -> None:
    scope, forever = CancelScope(), asyncio.ensure_future(asyncio.Event().wait())
    await settle((), scope)
    await settle((forever, asyncio.ensure_future(asyncio.sleep(0))), scope, first=True)
    assert not forever.done()
    forever.cancel()
