"""An agent that keeps a list of expenses, built with Pydantic AI. Nothing here knows of lanes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

INSTRUCTIONS = "Keep the user's list of expenses with your tools. Amounts are whole cents. Answer in one sentence."


@dataclass(frozen=True)
class Ledger:
    """The list, one line an expense: what, then cents."""

    path: Path

    def add(self, what: str, cents: int) -> str:
        """Add a line. Raises: ValueError for what cannot stand in one."""
        if cents <= 0 or not what.strip() or "\n" in what or ";" in what:
            raise ValueError(f"{what!r} for {cents} cents is no expense")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{what.strip()};{cents}\n")
        return f"added {what.strip()}, total now {self.total()} cents"

    def total(self) -> int:
        """The sum of all lines, in cents."""
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        return sum(int(line.rpartition(";")[2]) for line in lines)


agent = Agent(deps_type=Ledger, instructions=INSTRUCTIONS)


@agent.tool
def add_expense(context: RunContext[Ledger], what: str, cents: int) -> str:
    """Add one expense to the list."""
    return context.deps.add(what, cents)


@agent.tool
def total_of_expenses(context: RunContext[Ledger]) -> str:
    """Give the sum of all expenses."""
    return f"{context.deps.total()} cents"


async def keep(task: str, path: Path, model: OpenAIChatModel) -> str:
    """Do one task with the list in that file and return the agent's answer."""
    return str((await agent.run(task, deps=Ledger(path), model=model)).output)


def model_at(
    name: str,
    *,
    base_url: str | None = None,
    key: str | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> OpenAIChatModel:
    """The model of that name; where it is not said where and with which key, the environment's variables decide."""
    client = None if transport is None else httpx2.AsyncClient(transport=transport)
    return OpenAIChatModel(
        name, provider=OpenAIProvider(openai_client=AsyncOpenAI(base_url=base_url, api_key=key, http_client=client))
    )
