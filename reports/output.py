"""Output: bundles in, the board in every form out, each file whole or not at all, and a manifest of it all.

Room: file input and output. The lane command comes in; nothing here decides what a cell reads.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lanes.bundle import find_bundles
from lanes.bundle_reading import digest_bundle, read_bundle
from lanes.claims import Claims
from lanes.errors import UsageError
from lanes.local_table import LOCAL_NAME, load_local_row
from lanes.output_place import keep_from_git
from lanes.project import claims_of as claims_of_project
from lanes.project import load_project
from lanes.proof_declaration import declared_ids
from lanes.proof_record import find_proof_bundles
from lanes.providers import TABLE, Provider, load_providers, trust_store_digest
from lanes.record import Subject, digest_bytes
from lanes.subject import current_subject
from lanes.whole_file import whole_file
from reports.admit import Admission, ProviderRow
from reports.board import Board, Column, fold
from reports.history import CASSETTES, HISTORY, read_earlier_answers, read_history, read_last_seen, read_used_ids
from reports.manifest import MANIFEST, Manifest, digest_rules, render_manifest
from reports.render.ctrf import ctrf_pieces
from reports.render.json_board import board_pieces
from reports.render.junit import column_pieces
from reports.render.markdown import render_column as render_column_page
from reports.render.markdown import render_markdown
from reports.render.statement import render_statement
from reports.render.text import render_text
from reports.trend import trends
from reports.verdict import EVERYTHING, Asked, exit_code

FILE_WIDTH = 120
_BLOCK_PIECES = 512  # some ten thousand letters; more would be no quicker
HTTPS_PORT = 443
TEXT, MARKDOWN, JSON, HTML = "board.txt", "board.md", "board.json", "board.html"
Render = Callable[[], Iterable[str]]  # the pieces of one file, in order; a large board is never one text in memory
_COLUMN_FILES = ("junit-*.xml", "column-*.md", "ctrf-*.json", "statement-*.json")
_CONFIGURATION = ("tox.ini", "pyproject.toml", "lanes/policy.py", "lanes/providers.toml")


def build_reports(
    out_dir: Path,
    root: Path,
    now: datetime,
    *,
    asked: Asked = EVERYTHING,
    subject: Subject | None = None,
    claims: Claims | None = None,
) -> tuple[Board, int]:
    """Read every bundle under out_dir, fold the board, write it in all forms, and return it with the exit code.

    Shape: without a subject, the one of the tree at root as it is now; without claims, those of its claims file.
    Files of an earlier board are replaced. Of lanes that end at one time each waits for the one before, so that all
    files are of one board, and the last one holds the evidence of all.
    Raises: ClaimsError for a faulty claims file; OSError when the folder cannot be written.
    """
    about = current_subject(root) if subject is None else subject
    known = claims_of(root) if claims is None else claims
    with _only_writer(out_dir), _collector_at_rest():
        bundles = _digests(find_bundles(out_dir))
        admission = admission_for(root, about, own=bundles)
        board = load_board(out_dir, root, now, subject=about, claims=known, admission=admission)
        configuration = configuration_digests(root)
        outputs = save_board(board, out_dir, configuration)
        manifest = Manifest(
            folded_at=now.astimezone(UTC).isoformat(),
            subject=about,
            rules=digest_rules(known, admission),
            configuration=configuration,
            bundles=bundles,
            proofs=_digests(find_proof_bundles(out_dir)),
            history_lines=len(read_history(root / HISTORY)),
            outputs=outputs,
        )
        _write_whole(out_dir / MANIFEST, [render_manifest(manifest)])
    return board, exit_code(board, asked)


@contextlib.contextmanager
def _only_writer(out_dir: Path) -> Iterator[None]:
    keep_from_git(out_dir)
    lock = out_dir / "locks" / "board"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the end of the process gives it back, however it ends
        yield


def load_board(
    out_dir: Path,
    root: Path,
    now: datetime,
    *,
    subject: Subject | None = None,
    claims: Claims | None = None,
    admission: Admission | None = None,
    history_lines: int | None = None,
) -> Board:
    """Read every bundle under out_dir and fold the board, writing nothing.

    Shape: history_lines is how many lines of the history there were when the board was folded first, all by default.
    """
    known = claims_of(root) if claims is None else claims
    if admission is None:
        admission = admission_for(root, current_subject(root) if subject is None else subject)
    with _collector_at_rest():
        return _fold(out_dir, root, now, known, admission, history_lines)


def _fold(
    out_dir: Path, root: Path, now: datetime, known: Claims, admission: Admission, history_lines: int | None
) -> Board:
    return fold(
        (read_bundle(folder) for folder in find_bundles(out_dir)),  # one after the other: they need not fit in memory
        known,
        admission=admission,
        last_seen=read_last_seen(root / HISTORY, now, history_lines),
        trends=trends([line for line in read_history(root / HISTORY, history_lines) if line is not None], now),
        proofs=(read_bundle(folder) for folder in find_proof_bundles(out_dir)),
        declared=declared_ids(root),
    )


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Let the garbage collector rest: a fold only keeps, in no circles, and going through it all takes a third more."""
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_at_work:
            gc.enable()


def admission_for(
    root: Path, subject: Subject, history_lines: int | None = None, own: Collection[str] = ()
) -> Admission:
    """What live records about a subject are judged against, from the tables and the history of a project.

    Shape: own are the digests of the bundles that are judged; what the history says of these alone is no reuse.
    """
    return Admission(
        subject=subject,
        providers=provider_rows(load_providers()),
        trust_store=trust_store_digest(),
        used_ids=read_used_ids(root, history_lines, own),
        earlier_answers=read_earlier_answers(root, history_lines, own),
    )


def save_board(board: Board, out_dir: Path, digests: Mapping[str, str] | None = None) -> dict[str, str]:
    """Write the board in every form and return the digest of each file by its name.

    Shape: digests is what configured the runs, file name to SHA-256, for the statements.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    renders = output_files(board, digests or {})
    for pattern in _COLUMN_FILES:
        for stale in out_dir.glob(pattern):
            if stale.name not in renders:
                stale.unlink()
    return {name: _write_whole(out_dir / name, render()) for name, render in renders.items()}


def output_files(board: Board, digests: Mapping[str, str]) -> dict[str, Render]:
    """Every file that a board is written to, by name, each with what renders it."""
    renders: dict[str, Render] = {
        TEXT: lambda: [render_text(board, width=FILE_WIDTH)],
        MARKDOWN: lambda: [render_markdown(board)],
        JSON: lambda: board_pieces(board),
        HTML: lambda: _page(board),
    }
    for column in board.columns:
        name = _file_part(column.id)
        renders[f"junit-{name}.xml"] = partial(column_pieces, board, column)
        renders[f"column-{name}.md"] = partial(_column_page, board, column)
        renders[f"ctrf-{name}.json"] = partial(ctrf_pieces, board, column)
        statement = render_statement(board, column, digests)
        if statement is not None:
            renders[f"statement-{name}.json"] = partial(list, [statement])
    return renders


def _column_page(board: Board, column: Column) -> Iterator[str]:
    yield render_column_page(board, column)


def _page(board: Board) -> Iterator[str]:
    try:  # the template engine takes its time to load, and few commands need it
        from reports.render.html import html_pieces
    except ModuleNotFoundError as error:
        message = f"the package {error.name} is not installed here"
        raise UsageError(message, where=HTML, fix="pip install 'five-lanes[reports]'") from error

    yield from html_pieces(board)


def _digests(folders: Iterable[Path]) -> tuple[str, ...]:
    return tuple(sorted({digest_bundle(folder) for folder in folders}))


def configuration_digests(root: Path) -> dict[str, str]:
    """What configures a run, by name: SHA-256 of each file that is there, and of the list of all recordings."""
    found = {
        name: hashlib.sha256((root / name).read_bytes()).hexdigest()
        for name in (*_CONFIGURATION, load_project(root).claims)
        if (root / name).is_file()
    }
    recordings = sorted(path for path in (root / CASSETTES).rglob("*") if path.is_file())
    if recordings:
        lines = (f"{path.relative_to(root).as_posix()} {digest_bytes(path.read_bytes())}\n" for path in recordings)
        found[str(CASSETTES)] = hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
    return found


def show_board(board: Board, environ: Mapping[str, str], *, is_terminal: bool, columns: int) -> str:
    """The board for a terminal: colours when it is one and nobody minds, as wide as it is."""
    return render_text(board, width=columns, colour=wants_colour(environ, is_terminal=is_terminal))


def wants_colour(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether to colour: NO_COLOR forbids it, FORCE_COLOR asks for it, else a terminal that is not dumb decides."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal and environ.get("TERM") != "dumb"


def claims_of(root: Path) -> Claims:
    """The claims of a project; none where it has no claims file."""
    return claims_of_project(load_project(root))


def provider_rows(providers: tuple[Provider, ...], table: Path = TABLE) -> dict[str, ProviderRow]:
    """What admission asks of each provider of a table, and of the model on this machine."""
    digest = load_local_row().digest
    local = ProviderRow(LOCAL_NAME, issues_id=False, sends_date=False, private=True, local=True, model_digest=digest)
    return {LOCAL_NAME: local} | {
        each.name: ProviderRow(
            name=each.name,
            hosts=(each.host if each.port == HTTPS_PORT else f"{each.host}:{each.port}",),
            path_prefix=each.path_prefix,
            issues_id=bool(each.id_pattern),
            id_pattern=each.id_pattern or ".+",
            sends_date=each.sends_date,
            private=each.peers == "private",
            model_family=each.model_family,
            tunnel=each.tunnel,
            trust_store=trust_store_digest(each, table) if each.authority else "",
        )
        for each in providers
    }


def _file_part(column_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", column_id) or "lane"


def _write_whole(path: Path, pieces: Iterable[str]) -> str:
    """Write a file whole or not at all, and return the digest of what it holds."""
    digest = hashlib.sha256()
    with whole_file(path) as file:  # the evidence gives it again: no promise rests on this copy
        for data in _blocks(pieces):
            digest.update(data)
            file.write(data)
    return "sha256:" + digest.hexdigest()


def _blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """The pieces in UTF-8, many at a time: there are millions, most of a few letters."""
    waiting = iter(pieces)
    while block := list(itertools.islice(waiting, _BLOCK_PIECES)):
        yield "".join(block).encode("utf-8")
