"""The agents that are alive in a process, by session id, and who is told when one comes or goes.

Room: assemble enters agents and takes them out; surfaces look them up and observe. Whoever shares agents passes this
object on; there is no other place that knows of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.errors import SessionExistsError
from harness.loop.agent import Agent
from harness.model.messages import SessionId

Beginning = Literal["startup", "resume"]


@dataclass(frozen=True, slots=True)
class AgentEntered:
    """An agent is ready for work; nobody could see it before."""

    agent: Agent
    beginning: Beginning


@dataclass(frozen=True, slots=True)
class AgentLeft:
    """An agent is disposed; its log is still held until it is closed."""

    agent: Agent


LiveNotice: TypeAlias = AgentEntered | AgentLeft


class LiveAgents:
    """Agents by session id; an id is alive once.

    Shape: iterating gives the agents in the order they entered. Observers are told after the fact; one that raises is
    collected in failures and stops nothing.
    """

    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self._agents: dict[SessionId, Agent] = {}
        self._observers: list[Callable[[LiveNotice], None]] = []

    def __len__(self) -> int:
        return len(self._agents)

    def __iter__(self) -> Iterator[Agent]:
        return iter(tuple(self._agents.values()))

    def get(self, session_id: SessionId) -> Agent | None:
        """The live agent of that session, or None."""
        return self._agents.get(session_id)

    def enter(self, agent: Agent, beginning: Beginning) -> Callable[[], None]:
        """Make the agent known; the result takes it out again, and a second call of it does nothing.

        Raises: SessionExistsError when an agent of that id is alive; that one stays, and nobody is told.
        """
        if agent.id in self._agents:
            raise SessionExistsError(
                f"session {agent.id!r} has a live agent already",
                where="live agents",
                expected="an id that is alive once",
                fix="use the agent there is, or choose another id",
            )
        self._agents[agent.id] = agent
        self._tell(AgentEntered(agent, beginning))

        def leave() -> None:
            if self._agents.get(agent.id) is agent:
                del self._agents[agent.id]
                self._tell(AgentLeft(agent))

        return leave

    def observe(self, observer: Callable[[LiveNotice], None]) -> Callable[[], None]:
        """Call the observer for every agent that enters or leaves from now on; the result stops that."""
        self._observers.append(observer)

        def detach() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return detach

    def _tell(self, notice: LiveNotice) -> None:
        for observer in tuple(self._observers):
            try:
                observer(notice)
            except Exception as error:  # noqa: BLE001 - an observer may raise anything and may veto nothing
                self.failures.append(error)
