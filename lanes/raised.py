"""What the phases of an item raised themselves, seen inside every other hook.

Room: the item hooks register it once all conftest files are loaded, and ask with the report of each phase. It decides
nothing.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

_RAISED = pytest.StashKey[dict[str, BaseException]]()


class PhaseWitness:
    """The innermost wrappers around the three phases of an item, and around its function.

    Limits: a hook that calls the test's function itself, or puts another in its place, hides from it what that raises;
    so does a wrapper with `trylast` of a plugin that is registered while the tests run.
    """

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Notice what the item's setup raises."""
        return (yield from _noticed(item, "setup"))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Notice what the item's call raises."""
        return (yield from _noticed(item, "call"))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Notice what the item's function raises, before any wrapper of its call does."""
        return (yield from _noticed(pyfuncitem, "call"))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Notice what the item's teardown raises."""
        return (yield from _noticed(item, "teardown"))


def take_raised(item: pytest.Item, phase: str) -> BaseException | None:
    """What a phase of the item raised the last time, once; None when it raised nothing."""
    return item.stash.setdefault(_RAISED, {}).pop(phase, None)


def _noticed(item: pytest.Item, phase: str) -> Generator[None, object, object]:
    try:
        return (yield)
    except BaseException as error:
        item.stash.setdefault(_RAISED, {})[phase] = error
        raise
