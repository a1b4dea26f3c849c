"""The way to the model on this machine for a recording: started for it, witnessed, and asked as the lane asks it.

Room: the recorder comes in.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from lanes.asking import AskedStepByStep
from lanes.errors import UsageError
from lanes.local_channel import LocalTransport
from lanes.local_model import RunningModel, interpreters_at_hand, local_model
from lanes.local_table import load_local_row
from lanes.playing import Target
from lanes.scenario import Scenario


@dataclass(frozen=True, slots=True)
class LocalWay:
    """A target, the witness on the way to it, and what is put around a channel."""

    target: Target
    witness: LocalTransport
    around: Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport]


def local_target(running: RunningModel) -> Target:
    """How the program is told of the model on this machine: any server on loopback, which needs no key."""
    return Target(running.base_url, "custom", running.model, None)


@contextmanager
def local_way(scenario: Scenario, environ: Mapping[str, str], tell: Callable[[str], None]) -> Generator[LocalWay]:
    """Start the model for one recording, and end it afterwards.

    Raises: UsageError for a story that is too much for it; LocalModelError when it cannot be had.
    """
    if not scenario.is_for_small_models:
        raise UsageError(
            f"{scenario.name} is not for so small a model",
            where="lanes record",
            expected="a story each of whose runs says which tools are forced",
            fix="name a story that begins with small-, or another target",
        )
    with local_model(load_local_row(), environ, tell, interpreters_at_hand()) as server:
        running = server.running
        yield LocalWay(
            local_target(running),
            LocalTransport(running),
            lambda transport: AskedStepByStep(transport, running.sampling, scenario.forced),
        )
