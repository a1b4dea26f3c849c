"""Output: bundles in, the board in every form out, each file whole or not at all.

Room: file input and output. The lane command comes in; nothing here decides what a cell reads.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from lanes.bundle import Bundle, find_bundles
from lanes.bundle_reading import read_bundle
from lanes.claims import Claims, load_claims
from lanes.proof_declaration import declared_ids
from lanes.proof_record import find_proof_bundles
from lanes.providers import Provider, load_providers, trust_store_digest
from lanes.record import Subject
from lanes.subject import current_subject
from reports.admit import Admission, ProviderRow
from reports.board import Board, fold
from reports.history import HISTORY, read_last_seen, read_used_ids
from reports.render.ctrf import render_ctrf
from reports.render.json_board import render_json
from reports.render.junit import render_column
from reports.render.markdown import render_column as render_column_page
from reports.render.markdown import render_markdown
from reports.render.statement import render_statement
from reports.render.text import render_text
from reports.verdict import EVERYTHING, Asked, exit_code

FILE_WIDTH = 120
CLAIMS = Path("lanes") / "claims.toml"
TEXT, MARKDOWN, JSON = "board.txt", "board.md", "board.json"
_COLUMN_FILES = ("junit-*.xml", "column-*.md", "ctrf-*.json", "statement-*.json")
_CONFIGURATION = ("tox.ini", "pyproject.toml", "lanes/policy.py", "lanes/claims.toml", "lanes/providers.toml")


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
    Files of an earlier board are replaced.
    Raises: ClaimsError for a faulty claims file; OSError when the folder cannot be written.
    """
    board = load_board(out_dir, root, now, subject=subject, claims=claims)
    save_board(board, out_dir, configuration_digests(root))
    return board, exit_code(board, asked)


def load_board(
    out_dir: Path, root: Path, now: datetime, *, subject: Subject | None = None, claims: Claims | None = None
) -> Board:
    """Read every bundle under out_dir and fold the board, writing nothing."""
    bundles: list[Bundle] = [read_bundle(folder) for folder in find_bundles(out_dir)]
    known = claims_of(root) if claims is None else claims
    about = current_subject(root) if subject is None else subject
    admission = Admission(
        subject=about,
        providers=_provider_rows(load_providers()),
        trust_store=trust_store_digest(),
        used_ids=read_used_ids(root),
    )
    return fold(
        bundles,
        known,
        admission=admission,
        last_seen=read_last_seen(root / HISTORY, now),
        proofs=[read_bundle(folder) for folder in find_proof_bundles(out_dir)],
        declared=declared_ids(root),
    )


def save_board(board: Board, out_dir: Path, digests: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Write the board in every form and return the files.

    Shape: digests is what configured the runs, file name to SHA-256, for the statements.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    renders: dict[str, Callable[[], str]] = {
        TEXT: lambda: render_text(board, width=FILE_WIDTH),
        MARKDOWN: lambda: render_markdown(board),
        JSON: lambda: render_json(board),
    }
    for column in board.columns:
        name = _file_part(column.id)
        renders[f"junit-{name}.xml"] = partial(render_column, board, column)
        renders[f"column-{name}.md"] = partial(render_column_page, board, column)
        renders[f"ctrf-{name}.json"] = partial(render_ctrf, board, column)
        statement = render_statement(board, column, digests or {})
        if statement is not None:
            renders[f"statement-{name}.json"] = partial(str, statement)
    for pattern in _COLUMN_FILES:
        for stale in out_dir.glob(pattern):
            if stale.name not in renders:
                stale.unlink()
    for name, render in renders.items():  # one after the other: a large board is held as one text at a time
        _write_whole(out_dir / name, render())
    return tuple(out_dir / name for name in renders)


def configuration_digests(root: Path) -> dict[str, str]:
    """What configures a run, by name: SHA-256 of each file that is there."""
    return {
        name: hashlib.sha256((root / name).read_bytes()).hexdigest()
        for name in _CONFIGURATION
        if (root / name).is_file()
    }


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
    path = root / CLAIMS
    return load_claims(path) if path.exists() else Claims()


def _provider_rows(providers: tuple[Provider, ...]) -> dict[str, ProviderRow]:
    return {
        each.name: ProviderRow(
            name=each.name,
            hosts=(each.host,),
            path_prefix=each.path_prefix,
            issues_id=bool(each.id_pattern),
            id_pattern=each.id_pattern or ".+",
            sends_date=each.sends_date,
            private=each.peers == "private",
        )
        for each in providers
    }


def _file_part(column_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", column_id) or "lane"


def _write_whole(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
