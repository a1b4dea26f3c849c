"""A story played inside this process: its runs through the product's one factory, over whatever transport is given.

Room: the recorder and the suites may come in. It knows the product, and neither vcrpy nor the mock provider, so that
the real lane can use it too.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx

from harness.assemble import assemble
from harness.loop.redaction import Secrets
from harness.model.messages import Message, SessionId, TextBlock, UserSource
from harness.settings import Flags, Settings, from_environment
from lanes.errors import ScenarioError
from lanes.normalize import Place, places_of
from lanes.scenario import Scenario, write_workspace

WORKSPACE = "/workspace"  # what stands in a recording for the folder of a run; a log wants an absolute path
NUMBERS = frozenset({"--compact-at", "--delegation-depth", "--max-steps", "--retry-base-ms"})
KEPT_VARIABLES = ("PATH", "HARNESS_SEED", "HARNESS_ALLOWED_HOSTS", "HARNESS_DIALECT")


@dataclass(frozen=True, slots=True)
class Target:
    """Who is asked. key is a variable's name; a loopback target needs none and is never a live one."""

    base_url: str
    provider: str
    model: str
    key: str | None


async def drive_story(
    scenario: Scenario,
    target: Target,
    environ: Mapping[str, str],
    workspace: Path,
    sessions: Path,
    transport: httpx.AsyncBaseTransport,
    *,
    secrets: Secrets | None = None,
) -> Path:
    """Play all runs of a story through the one factory, each in a lifetime of its own, and give the log's file.

    Shape: the story's own script answers nothing here; whoever stands behind the transport does. secrets are taken out
    of what the program writes down, beside its own.
    """
    write_workspace(scenario, workspace)
    resume: SessionId | None = None
    path: Path | None = None
    for run in scenario.runs:
        assembled = await assemble(
            _settings(target, environ, workspace, sessions, run.flags),
            transport=_Shared(transport),
            resume=resume if run.resume else None,
            secrets=secrets,
        )
        try:
            message = Message(assembled.new_message_id(), "user", (TextBlock(run.task),), UserSource())
            assembled.agent.followup(message)
            await assembled.agent.when_idle()
            await assembled.writer.flush()
            resume, path = assembled.writer.log.header.id, assembled.writer.path
        finally:
            await assembled.close()
    if path is None:
        raise ScenarioError("the story has no run", where=scenario.name, expected="at least one", fix="add one")
    return path


class _Shared(httpx.AsyncBaseTransport):
    """A transport that outlives the client it is given to: closing it is its owner's business."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._inner.handle_async_request(request)


def workspace_places(workspace: Path) -> tuple[Place, ...]:
    """Every spelling of a run's folder, and what stands for it in a recording."""
    return places_of({WORKSPACE: sorted({str(workspace), str(workspace.resolve())})})


def _settings(
    target: Target, environ: Mapping[str, str], workspace: Path, sessions: Path, flags: Sequence[str] = ()
) -> Settings:
    wanted = (*KEPT_VARIABLES, target.key or "OPENAI_API_KEY")
    allowed = {name: environ[name] for name in wanted if name in environ}
    numbers = _numbers(flags)
    return from_environment(
        {"PATH": os.environ.get("PATH", os.defpath), **allowed},
        Flags(
            provider=target.provider,
            model=target.model,
            base_url=target.base_url,
            session_root=str(sessions),
            cwd=str(workspace),
            max_steps=numbers.get("--max-steps"),
            retry_base_ms=numbers.get("--retry-base-ms"),
            compact_at=numbers.get("--compact-at"),
            delegation_depth=numbers.get("--delegation-depth"),
        ),
    )


def _numbers(flags: Sequence[str]) -> dict[str, int]:
    """What a run's flags say with a number; the others change what is printed, and nothing is printed here."""
    return {flag: int(value) for flag, value in itertools.pairwise(flags) if flag in NUMBERS}
