"""The act of recording: a story played against a provider or a script, checked, cleaned, stored, and played back.

Room: the command line and the replay suite may come in. It is one of the few rooms of the lanes that know the product.

Nothing is written when the story fails, when a secret is left, or when the new recording does not play back at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import difflib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from harness.loop.redaction import Secrets
from lanes.cassette import CassettePlayer
from lanes.environment import override_names
from lanes.errors import CassetteError, UsageError
from lanes.local_recording import local_way
from lanes.local_table import LOCAL_NAME
from lanes.log_recorder import record_session_log
from lanes.playing import Target, drive_story, workspace_places
from lanes.policy import DUMMY_KEY
from lanes.providers import Provider, has_key, load_providers
from lanes.recording import Circumstances, RecordingTransport, compose_cassette, store_cassette
from lanes.recording_lock import held_for_recording
from lanes.redaction import KEY_SHAPES, REDACTED, Redactor, forms_of, is_loopback, secrets_of
from lanes.scenario import LogFacts, Scenario, find_scenario
from lanes.sealed import SealedTransport
from lanes.story_log import check_log, read_rows, turn_failures
from lanes.subject import current_subject
from lanes.world import check_world
from mock_provider.server import ServerThread

CASSETTES = Path("cassettes") / "openai_chat"
SESSION_LOGS = Path("cassettes") / "session-logs"
EVERY_STORY = "all"  # with --scripted: every story whose session log is committed
OWN_SCRIPT = "script"  # the target that is the story's own script, played by the mock provider
EPILOG = "example: lanes record fix-test --target deepseek    (needs a key; the answers are real)"

Around = Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport]


def record(
    arguments: Sequence[str], environ: Mapping[str, str], root: Path, tell: Callable[[str], None] | None = None
) -> str:
    """Run `lanes record` and say what was written; tell is shown what a person waits for.

    Raises: UsageError for what may not be recorded here; CassetteError when nothing was stored.
    """
    parser = argparse.ArgumentParser(prog="lanes record", epilog=EPILOG, allow_abbrev=False)
    parser.add_argument("story", help="a scenario of lanes/scenarios; with --scripted also all")
    parser.add_argument("--target", help="a provider of lanes/providers.toml, local, a URL on loopback, or script")
    parser.add_argument("--scripted", action="store_true", help="record the session log of the story's own script")
    options = parser.parse_args(list(arguments))
    if environ.get("CI"):
        raise UsageError(
            "recording is refused in CI",
            where="lanes record",
            expected="a person who reviews the recording",
            fix="record on your machine and commit the file",
        )
    if options.scripted and options.story == EVERY_STORY:
        logs = sorted((root / SESSION_LOGS).glob("*/"))
        return "\n".join(_record_log(find_scenario(folder.name), root) for folder in logs)
    scenario = find_scenario(options.story)
    if options.scripted:
        return _record_log(scenario, root)
    path = root / CASSETTES / f"{scenario.name}.yaml"
    commit = current_subject(root).commit
    if options.target == OWN_SCRIPT:
        return _record_own_script(scenario, path, root)
    if options.target == LOCAL_NAME:
        with local_way(scenario, environ, tell or _tell_nobody) as way:
            facts = Circumstances(recorded_at=_now(), commit=commit)
            asyncio.run(
                record_cassette(scenario, way.target, environ, path, facts, witness=way.witness, around=way.around)
            )
        return f"{path.relative_to(root)}: recorded from {way.target.model} on this machine, and played back"
    target = choose_target(options.target, environ)
    witness = None if target.key is None else SealedTransport(_row(target))
    facts = Circumstances(recorded_at=None if witness is None else _now(), commit=commit)
    asyncio.run(record_cassette(scenario, target, environ, path, facts, witness=witness))
    return f"{path.relative_to(root)}: recorded and played back"


def _tell_nobody(text: str) -> None:
    """Show progress to nobody: there is no terminal."""


def _row(target: Target) -> Provider:
    return next(provider for provider in load_providers() if provider.name == target.provider)


def _record_log(scenario: Scenario, root: Path) -> str:
    folder = root / SESSION_LOGS / scenario.name
    record_session_log(scenario, folder)
    return f"{folder.relative_to(root)}: recorded; the answers are scripted"


def _record_own_script(scenario: Scenario, path: Path, root: Path) -> str:
    with ServerThread(scenario.script) as mock:
        target = Target(mock.base_url("openai_chat"), "openai", "m-small", "OPENAI_API_KEY")
        facts = Circumstances(recorded_at=None, commit=None)
        asyncio.run(record_cassette(scenario, target, {"OPENAI_API_KEY": DUMMY_KEY}, path, facts))
    return f"{path.relative_to(root)}: recorded and played back; the answers are scripted"


def choose_target(asked: str | None, environ: Mapping[str, str]) -> Target:
    """The provider to record from.

    Raises: UsageError for an unknown one, an address that is not this machine, or a missing key.
    """
    providers = {provider.name: provider for provider in load_providers()}
    if asked is None:
        raise UsageError(
            "no target is given",
            where="lanes record",
            expected=", ".join([*providers, LOCAL_NAME]),
            fix="add --target NAME",
        )
    if asked in providers:
        provider = providers[asked]
        if not has_key(environ, provider):
            raise UsageError(
                f"no key for {asked}",
                where="lanes record",
                expected=f"the variable {provider.key}",
                fix=f"export {provider.key}=…, or give a base URL on loopback",
            )
        return Target(provider.base_url, provider.name, provider.model, provider.key)
    if not _is_on_this_machine(asked):
        close = difflib.get_close_matches(asked, [*providers, LOCAL_NAME], n=1)
        shown = _without_secrets(asked, environ)
        raise UsageError(
            f"target {shown!r} is unknown",
            where="lanes record",
            expected=f"{', '.join(providers)}, {LOCAL_NAME}, or http://127.0.0.1:PORT/v1",
            fix=f"did you mean {close[0]!r}?" if close else "an address elsewhere needs a row in lanes/providers.toml",
        )
    return Target(asked, "openai", "m-small", None)


def _is_on_this_machine(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme == "http" and is_loopback(parts.hostname or "")
    except ValueError:  # an open bracket, a port that is none
        return False


def _without_secrets(address: str, environ: Mapping[str, str]) -> str:
    redactor = Redactor(values=secrets_of(environ))
    try:
        return redactor.url(address) if "://" in address else redactor.text(address)
    except ValueError:
        return redactor.text(address)


async def record_cassette(
    scenario: Scenario,
    target: Target,
    environ: Mapping[str, str],
    path: Path,
    facts: Circumstances,
    *,
    witness: SealedTransport | None = None,
    around: Around = lambda transport: transport,
) -> None:
    """Play the story against the target, and store its exchanges if all is well.

    Shape: a witness is the way to a model and notes what came over it; without one the answers count as scripted.
    around is put around the way, in the recording and in each replay of it alike.
    Raises: CassetteError that says what went wrong; the old cassette is then left as it was.
    """
    redactor = Redactor(values=secrets_of(environ))
    with held_for_recording(path), _without_overrides(), _folders() as (workspace, sessions):
        places = workspace_places(workspace)
        facts = Circumstances(facts.recorded_at, facts.commit, places, facts.keeps_transient)
        inner = witness or httpx.AsyncHTTPTransport()
        transport = RecordingTransport(inner, now_ms=lambda: time.monotonic_ns() // 1_000_000)
        try:
            log = await drive_story(
                scenario, target, environ, workspace, sessions, around(transport), secrets=_secrets(redactor)
            )
        finally:
            await transport.aclose()
        _check_told(scenario, workspace, log, redactor)
        if witness is not None:
            transport.prove(witness.notes, witness.proof_facts())
        text = compose_cassette(transport.exchanges, redactor, facts)
        with tempfile.TemporaryDirectory() as beside:
            trial = Path(beside) / path.name
            store_cassette(trial, text, keeps_transient=facts.keeps_transient)
            await play_back(scenario, target, trial, redactor, around=around, keeps_transient=facts.keeps_transient)
        store_cassette(path, text, keeps_transient=facts.keeps_transient)


async def play_back(
    scenario: Scenario,
    target: Target,
    path: Path,
    redactor: Redactor | None = None,
    *,
    around: Around = lambda transport: transport,
    keeps_transient: bool = False,
) -> None:
    """Play a story from its cassette, with no key and no network.

    Raises: CassetteError when a request misses, an exchange is left over, or the world is not as the story says.
    """
    redactor = redactor or Redactor()
    with _folders() as (workspace, sessions):
        player = CassettePlayer(
            path, places=workspace_places(workspace), redactor=redactor, keeps_transient=keeps_transient
        )
        keyless = Target(target.base_url, target.provider, target.model, None)
        environ = {"OPENAI_API_KEY": DUMMY_KEY}
        log = await drive_story(
            scenario, keyless, environ, workspace, sessions, around(player), secrets=_secrets(redactor)
        )
        problems = player.verify()
        if problems or not player.answers:
            raise CassetteError(
                "the recording does not play back",
                where=path.name,
                expected="every exchange asked for once, in order",
                fix="\n".join(problems) or "no request was made",
                code="CASSETTE_PLAYBACK",
            )
        _check_told(scenario, workspace, log, redactor)


def _secrets(redactor: Redactor) -> Secrets:
    """What the program of a recording must not write down; it says the same in its place as the recording does."""
    forms = {form for value in redactor.values for form in forms_of(value).values()}
    return Secrets(tuple(sorted(forms)), shapes=KEY_SHAPES, stand_in=REDACTED)


def _check_told(scenario: Scenario, workspace: Path, log: Path, redactor: Redactor) -> None:
    """Check the world, and how the turns ended; the ids of tool calls are each model's own."""
    ends = LogFacts(turn_ends=scenario.log.turn_ends)
    rows = read_rows(log)
    problems = [*check_world(scenario.world, workspace), *check_log(ends, rows)]
    if problems:
        problems += turn_failures(rows)
        raise CassetteError(
            "the story failed, nothing was stored",
            where=scenario.name,
            expected="the world the scenario describes",
            fix=redactor.text("\n".join(problems)),
            code="CASSETTE_REFUSED",
        )


@contextlib.contextmanager
def _without_overrides() -> Iterator[None]:
    """Take out of the environment what could aim a client elsewhere, as a lane does before its first test."""
    taken = {name: os.environ.pop(name) for name in override_names(os.environ)}
    try:
        yield
    finally:
        os.environ.update(taken)


@contextlib.contextmanager
def _folders() -> Iterator[tuple[Path, Path]]:
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        workspace, sessions = Path(folder) / "workspace", Path(folder) / "sessions"
        workspace.mkdir()
        sessions.mkdir()
        yield workspace, sessions


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
