"""The parent of a lane: prepares its environment and its wall, starts pytest inside, and judges what that left behind.

Room: `lanes.cli` alone comes in. It has one thread, because a namespace can only be entered before the second.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Literal, NoReturn, cast

from lanes.bundle import BundleHeader, amend_trailer, bundle_folder, clear_folder, write_not_run
from lanes.bundle_reading import read_bundle
from lanes.environment import MARK_VARIABLE, TOX_VARIABLE, LaneEnvironment, build_environment
from lanes.errors import LocalModelError
from lanes.guard import REFUSED
from lanes.hosted import Hosted, private_addresses, start_hosted
from lanes.kept_recordings import recording_notes, times_of_commits
from lanes.leftovers import TrackedFiles, remove_secrets
from lanes.live_run import NO_WISH, LiveTarget, LiveWish, choose_targets, why_no_key
from lanes.local_model import HOST, ModelServer, local_model, own_interpreter
from lanes.local_run import write_local_run
from lanes.local_table import load_local_row
from lanes.namespace import Entry, enter_namespace, namespace_id
from lanes.one_copy import check_loops, check_one_copy, not_imported
from lanes.output_place import held_place
from lanes.policy import LANES, LanePolicy, Marker
from lanes.project import load_project
from lanes.providers import TABLE, Provider, has_key, load_providers
from lanes.pytest_command import PytestArguments, build_command, check_arguments
from lanes.record import Subject, digest_bytes, group_to_json
from lanes.spool import FACTS_FILE, SUMMARY_FILE, RefusalReader, read_canaries, read_document, write_document
from lanes.subject import current_subject
from lanes.tether import PARENT_VARIABLE

EXIT_PASSED = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_VOID = 3
EXIT_NOT_LIVE = 4
EXIT_NOTHING_RUN = 5

# What pytest says, in the words of a lane. Its internal error (3) means that nothing it said can be believed.
_PYTEST_EXITS = {0: EXIT_PASSED, 1: EXIT_FAILED, 2: EXIT_USAGE, 3: EXIT_VOID, 4: EXIT_USAGE, 5: EXIT_NOTHING_RUN}
_CONFIGURATION_FILES = ("tox.ini", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """What a person asked for.

    Shape: `environment` is the name the lane was asked for by, which is its own when that is empty; `run_id` is made
    for this run when it is empty, and shards of one run are given theirs; `pytest_arguments` go to pytest as they are,
    except that those which would change what a lane is are refused.
    """

    policy: LanePolicy
    marker: Marker
    root: Path
    out: Path
    shard_index: int = 1
    shard_total: int = 1
    workers: str = "0"
    require_live: bool = False
    require_depth: Literal["D2", "D3"] = "D2"
    pytest_arguments: tuple[str, ...] = ()
    environment: str = ""
    run_id: str = ""
    live: LiveWish = NO_WISH


@dataclass(frozen=True, slots=True)
class LaneOutcome:
    """What came of a run.

    Shape: `breaches` are failures of the lane outside any item, one sentence each; `notes` are for the reader.
    """

    exit_code: int
    subject: Subject
    breaches: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def run_lane(
    request: LaneRequest, environ: Mapping[str, str], tell: Callable[[str], None] | None = None
) -> LaneOutcome:
    """Run one lane and leave its bundle under the output folder; tell is shown what a person waits for.

    Raises: UsageError before any test was started and any evidence written.
    """
    project = load_project(request.root)
    request = replace(request, policy=project.place(request.policy))
    arguments = check_arguments(request.root, request.policy, request.pytest_arguments)
    targets: tuple[LiveTarget, ...] = ()
    providers = load_providers()
    if not request.policy.keyless:
        targets, providers = choose_targets(request.live, providers, environ)
    with held_place(request.out, request.policy.name, _place_of(request, _mark_of(request, environ))):
        work = Path(tempfile.mkdtemp(prefix=f"lane-{request.policy.name}-"))
        try:
            run = _Run(request, environ, providers, work, targets)
            if not request.policy.keyless and not targets:
                return run.leave_not_run()
            return run.start(arguments, tell or _tell_nobody)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _tell_nobody(text: str) -> None:
    """Show progress to nobody: there is no terminal."""


def leave_word_on_real(root: Path, out: Path, environ: Mapping[str, str], subject: Subject) -> None:
    """Leave, where no key is at hand, that the lane `real` was not run for want of one.

    Limits: evidence of a run that did start is never touched, whatever subject it is about.
    """
    policy, providers = LANES["real"], load_providers()
    folder = bundle_folder(out, policy.name)
    if any(has_key(environ, provider) for provider in providers) or (folder.exists() and not _is_word(folder)):
        return
    request = LaneRequest(policy=policy, marker="self", root=root, out=out)
    with held_place(request.out, policy.name, _place_of(request, policy.name)):
        started_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        run_id = f"{policy.name}-{secrets.token_hex(8)}"
        why = why_no_key(environ, providers)
        write_not_run(folder, _header_without_key(request, subject, why, started_at, run_id))


def _is_word(folder: Path) -> bool:
    """Whether a bundle says only that its lane was not run."""
    bundle = read_bundle(folder)
    return bundle.header.not_run_code is not None and not bundle.records


def _header_without_key(request: LaneRequest, subject: Subject, why: str, started_at: str, run_id: str) -> BundleHeader:
    return BundleHeader(
        lane=request.policy.name,
        run_id=run_id,
        subject=subject,
        shard_index=request.shard_index,
        shard_total=request.shard_total,
        lane_mark=request.policy.name,
        marker=request.marker,
        not_run_code="no-key",
        not_run_text=why,
        started_at=started_at,
    )


def _place_of(request: LaneRequest, mark: str) -> str:
    return f"{mark}-{request.shard_index}-of-{request.shard_total}"


def _mark_of(request: LaneRequest, environ: Mapping[str, str]) -> str:
    return environ.get(MARK_VARIABLE) or request.environment or request.policy.name


class _Run:
    """One run of one lane, from its preparation to its judgement."""

    def __init__(
        self,
        request: LaneRequest,
        environ: Mapping[str, str],
        providers: Sequence[Provider],
        work: Path,
        targets: Sequence[LiveTarget] = (),
    ) -> None:
        started = datetime.now(UTC)
        self._request = request
        self._environ = environ
        self._providers = providers
        self._targets = targets
        self._started_at = started.strftime("%Y-%m-%dT%H:%M:%SZ")
        self._run_id = request.run_id or f"{request.policy.name}-{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
        self._mark = _mark_of(request, environ)
        self._subject: Subject = current_subject(request.root)
        self._configuration = _configuration(request.root)
        self._folder = bundle_folder(request.out, self._mark, request.shard_index, request.shard_total)
        self._home = work / "home"
        self._spool = work / "spool"
        for folder in (self._home, self._spool):
            folder.mkdir(mode=0o700)

    def leave_not_run(self) -> LaneOutcome:
        """Leave the bundle of a lane without a key: every claim is not run, and nothing was started."""
        header = self._header_without_tests()
        write_not_run(self._folder, header)
        code = EXIT_NOT_LIVE if self._request.require_live else EXIT_PASSED
        note = f"lane {self._request.policy.name!r}: not run: no key; {header.not_run_text}"
        return LaneOutcome(code, self._subject, notes=(note,))

    def _leave_without_model(self, error: LocalModelError) -> LaneOutcome:
        code = "missing-dependency" if error.error_code == "LOCAL_MODEL_MISSING" else "outage"
        write_not_run(self._folder, replace(self._header_without_tests(), not_run_code=code, not_run_text=error.what))
        return LaneOutcome(error.exit_code, self._subject, breaches=(str(error),))

    def _header_without_tests(self) -> BundleHeader:
        why = why_no_key(self._environ, self._providers)
        header = _header_without_key(self._request, self._subject, why, self._started_at, self._run_id)
        return replace(
            header,
            configuration=self._configuration,
            lane_mark=self._mark,
            tox_env=self._environ.get(TOX_VARIABLE, ""),
            keys_removed=self._environment(namespace_id()).keys_removed,
        )

    def start(self, arguments: PytestArguments, tell: Callable[[str], None]) -> LaneOutcome:
        """Run the tests, with the model on this machine beside them in the environment that has one."""
        policy = self._request.policy
        with ExitStack() as held:
            entry = self._enter_wall()
            server: ModelServer | None = None
            if policy.network == "local":
                try:
                    server = held.enter_context(local_model(load_local_row(), self._environ, tell, own_interpreter()))
                except LocalModelError as error:
                    return self._leave_without_model(error)
            return self._run_tests(arguments, entry, server)

    def _enter_wall(self) -> Entry:
        policy = self._request.policy
        check_one_copy(self._request.root, policy.name)
        clear_folder(self._folder)  # a run that dies early must not speak through an older one
        if policy.keyless:
            return enter_namespace(loopback=policy.network != "none")
        outside = namespace_id()
        needs_wall = self._request.require_depth == "D3"
        return Entry(outside, "a lane with a network stands in no wall" if needs_wall else None)

    def _run_tests(self, arguments: PytestArguments, entry: Entry, server: ModelServer | None) -> LaneOutcome:
        """Run pytest inside the wall and judge what it left."""
        request = self._request
        tracked = TrackedFiles(request.root)
        environment = self._environment(entry.outside, server)
        self._write_facts(environment)
        if server is not None:
            write_local_run(self._spool, server.running, request.live)
        command = build_command(request.root, request.policy, request.workers, arguments)
        variables = {**environment.variables, PARENT_VARIABLE: str(os.getpid())}
        hosted: Hosted | None = None
        if not request.policy.keyless:
            hosted = start_hosted(self._targets, request.live, self._spool, variables, request.root, self._providers)
        process_id, code = _run_to_the_end(command, variables, request.root)
        guard_breaches = self._guard_breaches(process_id)
        changed = tracked.changed() if request.policy.keyless else ()
        leaks = remove_secrets(self._folder, environment.secrets)  # what this run wrote, and nothing of other runs
        shallow = entry.problem if request.require_depth == "D3" else None
        breaches = (
            *guard_breaches,
            *((f"guarded at D2 where D3 was required: {shallow}",) if shallow else ()),
            *(f"{path} is tracked and was changed by the lane" for path in changed),
            *(f"{path} held the value of a key and was removed" for path in leaks),
        )
        of_recordings, is_unused = recording_notes(request.root, self._folder, request.policy)
        exit_code = self._exit_code(code, void=bool(breaches)) or (EXIT_FAILED if is_unused else EXIT_PASSED)
        unread = not_imported(request.root, self._spool)
        extra = unread if hosted is None else {**unread, "hosted": hosted.facts()}
        amend_trailer(self._folder, exit_code=exit_code, breaches=breaches, extra=extra)
        notes = (
            *map(str, unread.values()),
            *of_recordings,
            *(() if entry.problem is None else (f"guarded at D2 only: {entry.problem}",)),
        )
        if server is not None and (how := server.how_it_ended()):
            notes += (f"the model server ended before the tests did: {how}",)
        notes += () if hosted is None else hosted.notes(self._environ)
        if request.shard_total > 1 and not request.run_id:
            notes += (f"shard {request.shard_index} of run {self._run_id}: give the others --run-id {self._run_id}",)
        return LaneOutcome(exit_code, self._subject, breaches, notes)

    def _environment(self, outside: str, server: ModelServer | None = None) -> LaneEnvironment:
        request = self._request
        return build_environment(
            self._environ,
            request.policy,
            mark=self._mark,
            home=self._home,
            spool=self._spool,
            out=request.out,
            run_id=self._run_id,
            outside=outside,
            providers=self._providers,
            shard=f"{request.shard_index}/{request.shard_total}",
            package=load_project(request.root).package,
            server="" if server is None else f"{HOST}:{server.running.port}",
            addresses=private_addresses(self._targets, self._providers),
        )

    def _write_facts(self, environment: LaneEnvironment) -> None:
        write_document(
            self._spool / FACTS_FILE,
            {
                "subject": group_to_json(self._subject),
                "marker": self._request.marker,
                "keys_removed": environment.keys_removed,
                "started_at": self._started_at,
                "secret": secrets.token_hex(16),
                "configuration": dict(self._configuration),
                "committed": dict(times_of_commits(self._request.root, self._request.policy)),
            },
        )

    def _guard_breaches(self, process_id: int) -> tuple[str, ...]:
        breaches: dict[str, int] = {}
        judged = self._judged_refusals()
        for refusal in RefusalReader(self._spool).all():
            if refusal.item is not None and judged.get(refusal.item, 0) > 0:
                judged[refusal.item] -= 1
                continue
            if refusal.item is not None:
                place = f"{refusal.item}, after it had ended"
            else:
                place = refusal.module or "outside any test"
            text = f"{place}: {refusal.what} refused [{refusal.code}]"
            breaches[text] = breaches.get(text, 0) + 1
        canaries = read_canaries(self._spool)
        shown = {canary.when for canary in canaries if canary.pid == process_id and canary.outcome == REFUSED}
        failed = [
            f"guard not shown at the {when} of the lane's process" for when in ("start", "end") if when not in shown
        ]
        if any(canary.outcome != REFUSED for canary in canaries if canary.pid != process_id):
            failed.append("guard not shown in a child process")
        loops = Counter(canary.loop for canary in canaries if canary.loop is not None and canary.when == "end")
        return (
            *(f"{text}, {count} tries" if count > 1 else text for text, count in breaches.items()),
            *failed,
            *check_loops(loops, self._subject.loop_digest),
        )

    def _judged_refusals(self) -> dict[str, int]:
        summary = read_document(self._spool / SUMMARY_FILE) or {}
        return dict(cast("Mapping[str, int]", summary.get("refusals", {})))

    def _exit_code(self, code: int, *, void: bool) -> int:
        if void:
            return EXIT_VOID
        summary = read_document(self._spool / SUMMARY_FILE) or {}
        if summary.get("not_loaded") and code in {0, 1, 2, 5}:
            return EXIT_USAGE
        is_sample = self._request.live.attempts > 0 or self._request.policy.network == "local"
        if is_sample and code == 1:  # its last attempt is no verdict: the board fails a test when none of them passed
            return EXIT_PASSED
        if code == EXIT_NOTHING_RUN and self._request.shard_total > 1:
            header = read_bundle(self._folder).header
            if header.expected and header.selected == ():  # the lane has tests, and none of them fell to this part
                return EXIT_PASSED
        return _PYTEST_EXITS.get(code, EXIT_FAILED)


def _run_to_the_end(command: Sequence[str], variables: Mapping[str, str], root: Path) -> tuple[int, int]:
    """Run a command until it has ended, whatever interrupts us meanwhile, and return its process id and exit code."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts background jobs deaf to interrupts and every child inherits that; tests interrupt children.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    previous = signal.signal(signal.SIGTERM, stop)
    sys.stdout.flush()
    process = subprocess.Popen(command, env=dict(variables), cwd=root)
    try:
        while True:
            try:
                return process.pid, process.wait()
            except KeyboardInterrupt:  # the terminal has sent it to the child too, which ends in its own order
                continue
    finally:
        signal.signal(signal.SIGTERM, previous)
        if process.poll() is None:
            process.terminate()
            process.wait()


def _configuration(root: Path) -> dict[str, str]:
    names = (*_CONFIGURATION_FILES, load_project(root).claims)
    files = {name: root / name for name in names} | {"lanes/providers.toml": TABLE}
    return {name: digest_bytes(path.read_bytes()) for name, path in files.items() if path.is_file()}
