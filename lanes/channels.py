"""The one maker of channels: how a test reaches a model in its lane, with the witness that tells how it went.

Room: `lanes.channel_fixture` makes one for each item that asks. It is one of the few rooms that know the mock provider.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from lanes.errors import GuardError, ScenarioError
from lanes.local_table import LOCAL_NAME
from lanes.normalize import Place
from lanes.observation import Blocked, NotRun, Observation
from lanes.policy import Channel, LanePolicy
from lanes.providers import Provider, load_providers
from lanes.record import Json
from lanes.trouble import Trouble
from lanes.witness import item_places, played_notes, script_facts, scripted_notes

if TYPE_CHECKING:  # each lane loads what its own channels need; `real` refuses to load a recorder or a mock at all
    from lanes.cassette import CassettePlayer
    from lanes.local_channel import LocalTransport
    from lanes.recorded_child import RecordedChild
    from lanes.sealed import SealedTransport
    from lanes.session_log import SessionLogPlayer
    from lanes.staleness import Today
    from mock_provider import Mock, Verdict
    from mock_provider.httpx_face import MockTransport
    from mock_provider.script import ScriptLike

SCRIPTED_ROOT = "http://none.invalid"  # the address of a model that has none; it never resolves (RFC 6761)
_OTHER_LANES = {
    "scripted": "unit or snapshot",
    "loopback": "offline",
    "session-log": "replay",
    "cassette": "replay",
    "live": "real",
}


@dataclass(slots=True)
class ScriptedChild:
    """The program as a child process, its model played from a script inside that process.

    Shape: `command` gives what to start instead of the program; one child plays the script once. `base_url` is what
    the program is told, and what it is told by default. `requests` are those it made, once it has ended.
    """

    base_url: str
    _specification: Path
    _requests: Path
    _verdict: Path
    _document: dict[str, Json]

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs the program with these arguments, as `harness ARGUMENTS` would."""
        self._specification.write_text(json.dumps({**self._document, "argv": list(arguments)}), "utf-8")
        return [sys.executable, "-m", "lanes.child", str(self._specification)]

    @property
    def requests(self) -> tuple[Mapping[str, Json], ...]:
        """The requests that the program made, oldest first, as the journal of the mock provider has them."""
        lines = self._requests.read_text("utf-8").splitlines() if self._requests.exists() else []
        return tuple(sorted((json.loads(line) for line in lines), key=lambda entry: cast("int", entry["number"])))

    @property
    def verdict(self) -> Mapping[str, Json]:
        """What the mock provider said at the end: `ok`, `text`, `used`, `left` and `unmatched`.

        Raises: ScenarioError when the child has not come to its end.
        """
        if not self._verdict.exists():
            raise ScenarioError("the program has not come to its end", where="scripted child")
        document: Mapping[str, Json] = json.loads(self._verdict.read_text("utf-8"))
        return document


@dataclass(slots=True)
class Channels:
    """The channels of one item.

    Shape: each method opens one and refuses where the lane's policy does not have it. `close` hands what the
    witnesses saw to the observation and fails the item when a script or a recording was not used as it was meant.
    """

    policy: LanePolicy
    _observation: Observation
    folder: Path
    today: Callable[[], Today] | None = None
    root: Path | None = None  # the project's, from which recordings are named
    _open: ExitStack = field(default_factory=ExitStack)
    _problems: list[str] = field(default_factory=list)

    def scripted(self, script: ScriptLike, *, is_judged: bool = True, virtual_time: bool = False) -> MockTransport:
        """Open a scripted model inside this process: an httpx transport whose `mock` is the control object."""
        self._check("scripted")
        from mock_provider import Mock
        from mock_provider import transport as mock_transport
        from mock_provider.script import as_script

        mock = Mock(as_script(script), root=SCRIPTED_ROOT)
        self._open.callback(self._take_journal, mock, "scripted", is_judged=is_judged)
        self._open.callback(mock.close)
        return mock_transport(mock, virtual_time=virtual_time)

    def scripted_child(self, script: ScriptLike, *, is_judged: bool = True) -> ScriptedChild:
        """Open a scripted model inside a child process of the program, which `lanes.child` starts."""
        self._check("scripted")
        from mock_provider.script import as_script

        checked = as_script(script)  # a mistake in the script is found here and not in the child
        notes = self._observation.new_note_file()
        document: dict[str, Json] = {
            "script": script if isinstance(script, str) else None,
            "content": cast("Json", dict(script)) if isinstance(script, Mapping) else None,
            "name": checked.name,
            "root": SCRIPTED_ROOT,
            "notes": str(notes),
            "token": self._observation.token,
            "folder": str(self.folder),
            "requests": str(notes.with_suffix(".requests")),
            "verdict": str(notes.with_suffix(".verdict")),
        }
        if document["script"] is None and document["content"] is None:
            if not isinstance(script, Path):
                raise ScenarioError("a child takes a script by its path or its content", where=checked.name)
            document["script"] = str(script)
        child = ScriptedChild(
            base_url=f"{SCRIPTED_ROOT}/v1",
            _specification=notes.with_suffix(".json"),
            _requests=notes.with_suffix(".requests"),
            _verdict=notes.with_suffix(".verdict"),
            _document=document,
        )
        self._open.callback(self._take_child, child, notes, is_judged=is_judged)
        return child

    def loopback(self, script: ScriptLike, *, is_judged: bool = True) -> Mock:
        """Open a mock provider on 127.0.0.1; its `base_url` is what a client is told."""
        self._check("loopback")
        from mock_provider import ServerThread
        from mock_provider.script import as_script

        server = ServerThread(as_script(script))
        self._open.callback(self._take_journal, server.mock, "loopback", is_judged=is_judged)
        return self._open.enter_context(server)

    def session_log(self, folder: Path, *, places: Sequence[Place] = (), is_judged: bool = True) -> SessionLogPlayer:
        """Open a committed session log as the model."""
        self._check("session-log")
        from lanes.session_log import SessionLogPlayer

        player = SessionLogPlayer(folder, places=places)
        age = self._age([player.recording.origin], player.bodies, player.recording.name)
        self._open.callback(self._take_player, player, "session-log", age, is_judged=is_judged)
        return player

    def recorded_child(self, folder: Path, *, places: Sequence[Place] = (), is_judged: bool = True) -> RecordedChild:
        """Open a committed session as the model inside child processes, which `lanes.replay_child` starts."""
        self._check("session-log")
        from lanes.recorded_child import RecordedChild
        from lanes.session_log import SessionLogPlayer

        notes = self._observation.new_note_file()
        document: dict[str, Json] = {
            "folder": str(folder.resolve()),
            "places": [[place.spelling, place.token] for place in places],
            "notes": str(notes),
            "token": self._observation.token,
        }
        player = SessionLogPlayer(folder, places=places)
        untouched = player.facts() | self._age([player.recording.origin], player.bodies, player.recording.name)
        child = RecordedChild(f"{SCRIPTED_ROOT}/v1", notes, document, player.verify(), untouched)
        self._open.callback(self._take_recorded_child, child, notes, is_judged=is_judged)
        return child

    def cassette(self, path: Path, *, places: Sequence[Place] = (), is_judged: bool = True) -> CassettePlayer:
        """Open a cassette as the model."""
        self._check("cassette")
        from lanes.cassette import CassettePlayer

        player = CassettePlayer(path, places=places, name=self._name_of(path))
        age = self._age([each.origin for each in player.file.interactions], player.file.bodies, player.file.name)
        self._open.callback(self._take_player, player, "cassette", age, is_judged=is_judged)
        return player

    def live(self, provider: str) -> SealedTransport:
        """Open the way to a provider of the table, sealed: its one host, verified TLS, no proxy, no recorder.

        Shape: an item that asks for a provider which this run does not ask any more ends here, blocked; one for which
        the budget was spent before it began was not run.
        """
        self._check("live")
        from lanes.live_run import claim_scope, load_live_run, provider_scope, stopped, why_spent
        from lanes.sealed import SealedTransport, unasked_model

        row, spool = _provider(provider), self._observation.spool
        self._observation.set_model(unasked_model(row))  # whom an item would have asked decides where it is shown
        trouble = stopped(spool, row.name)
        if trouble is not None:
            raise (NotRun if trouble.code == "budget" else Blocked)(trouble.code, trouble.text)
        run = load_live_run(spool)
        claims = [claim_scope(each) for each in self._observation.claim_ids]
        purse = None if run is None else run.purse(spool, row, f"test {self._observation.node_id}", *claims)
        if run is not None and (spent := why_spent(run, spool, (provider_scope(row.name), *claims))):
            raise NotRun("budget", spent)
        transport = SealedTransport(row, purse=purse, tell=self._hear(row.name))
        self._open.callback(self._take_live, transport)
        return transport

    def _hear(self, provider: str) -> Callable[[Trouble | None], None]:
        def hear(trouble: Trouble | None) -> None:
            self._observation.trouble = None if trouble is None else (provider, trouble)

        return hear

    def local(self) -> LocalTransport:
        """Open the way to the model on this machine, sealed: the one port that this lane started it on."""
        self._check("live")
        from lanes.local_channel import LocalTransport
        from lanes.local_run import load_local_run

        running = load_local_run(self._observation.spool)
        transport = LocalTransport(running, tell=self._hear(LOCAL_NAME))
        self._open.callback(self._take_live, transport)
        return transport

    def close(self, *, is_judged: bool = True) -> None:
        """Close every channel, newest first, and hand over what was seen.

        Shape: of a test that says it was not run, nothing is judged: it never asked for what it had opened.
        Raises: ScenarioError when a script or a recording was not used as it was meant.
        """
        self._open.close()
        if self._problems and is_judged:
            raise ScenarioError("\n".join(self._problems), where=self._observation.node_id, code="CHANNEL")

    def _check(self, channel: Channel) -> None:
        if channel not in self.policy.channels:
            message = f"lane {self.policy.name!r} has no {channel} channel"
            raise GuardError(
                message,
                where=self._observation.node_id,
                expected=", ".join(sorted(self.policy.channels)),
                fix=f"move the test to lanes/{_OTHER_LANES[channel]}",
                code="CHANNEL_REFUSED",
            )

    def _take_journal(self, mock: Mock, channel: Channel, *, is_judged: bool) -> None:
        entries = [entry.to_json() for entry in mock.journal.entries]
        for note in scripted_notes(entries, channel, item_places(self.folder)):
            self._observation.add_answer(note)
        if is_judged:
            self._judge(mock.verify(), {str(entry["dialect"]) for entry in entries} if channel == "loopback" else set())

    def _judge(self, verdict: Verdict, dialects: Set[str]) -> None:
        unmatched = len(verdict.unmatched) + len(verdict.invalid)
        facts = script_facts(verdict.script, verdict.used, len(verdict.left), unmatched)
        if dialects and self.today is not None:
            from lanes.staleness import drifted_dialects

            reasons = drifted_dialects(dialects, self.today())
            facts = {**facts, "stale_reasons": reasons} if reasons else facts
        self._observation.set_script(facts)
        if not verdict.ok:
            self._problems.append(str(verdict))

    def _take_child(self, child: ScriptedChild, notes: Path, *, is_judged: bool) -> None:
        self._observation.take_notes(notes)
        if not is_judged:
            return
        verdict = child.verdict
        used, left, unmatched = (cast("int", verdict[name]) for name in ("used", "left", "unmatched"))
        self._observation.set_script(script_facts(str(verdict["script"]), used, left, unmatched))
        if not verdict["ok"]:
            self._problems.append(str(verdict["text"]))

    def _take_recorded_child(self, child: RecordedChild, notes: Path, *, is_judged: bool) -> None:
        self._observation.take_notes(notes)
        if is_judged:
            self._observation.set_cassette(child.facts)
            self._problems.extend(child.problems)

    def _name_of(self, path: Path) -> str:
        """What a recording is called, from the project's root on; empty where it lies outside."""
        if self.root is None or not path.resolve().is_relative_to(self.root.resolve()):
            return ""
        return path.resolve().relative_to(self.root.resolve()).as_posix()

    def _age(self, origins: Sequence[Mapping[str, Json]], bodies: Sequence[Json], name: str) -> dict[str, Json]:
        """What is told of a recording's age and staleness; nothing where nobody says which day it is.

        Raises: CassetteError for a recording from the future, or from after its own commit.
        """
        if self.today is None:
            return {}
        from lanes.staleness import freshness

        return freshness(origins, bodies, self.today(), name)

    def _take_player(
        self, player: SessionLogPlayer | CassettePlayer, channel: Channel, age: Mapping[str, Json], *, is_judged: bool
    ) -> None:
        facts = {**player.facts(), **age}
        for note in played_notes(player.answers, channel):
            self._observation.add_answer(note)
        self._observation.set_cassette(facts)
        if is_judged:
            self._problems.extend(player.verify())

    def _take_live(self, transport: SealedTransport) -> None:
        for note in transport.notes:
            self._observation.add_answer(note)
        self._observation.set_model(transport.model_facts())
        self._observation.set_live_proof(transport.proof_facts())
        self._observation.set_cost(transport.cost_facts())


def _provider(name: str) -> Provider:
    table = {provider.name: provider for provider in load_providers()}
    return table[name] if name in table else _refuse_provider(name, list(table))


def _refuse_provider(name: str, known: Sequence[str]) -> NoReturn:
    raise GuardError(f"provider {name!r} is not in the table", expected=", ".join(known), code="PROVIDERS")
