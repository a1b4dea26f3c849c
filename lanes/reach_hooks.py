"""The pytest hooks that trace the tests of a proof while they run.

Room: the plugin registers it when the proof runner asked for it. It judges nothing and changes no outcome.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from lanes.reach import CURRENT_FILE, Watch


class ReachHooks:
    """Trace the expected items, and what a shared fixture does while any test of their files is set up."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._current = Path(watch.folder) / CURRENT_FILE

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace the set-up."""
        return (yield from self._traced(item, item.nodeid.partition("::")[0] in self._watch.files))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace the test."""
        return (yield from self._traced(item, item.nodeid in self._watch.items))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        """Trace the tear-down."""
        return (yield from self._traced(item, item.nodeid in self._watch.items))

    def _traced(self, item: pytest.Item, counts: bool) -> Generator[None, object, object]:
        if not counts:
            return (yield)
        self._current.write_text(item.nodeid, "utf-8")
        self._watch.start(item.nodeid)
        try:
            return (yield)
        finally:
            self._watch.stop()
            self._current.unlink()
