"""The board as one page of HTML that needs nothing from elsewhere: no request, no script, no colour to be understood.

Room: pure; takes a Board and returns text. Every expression of the template is escaped, and what an output cannot carry
is shown by number before that; the one style and the one script are let in by their digests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from reports.board import Board
from reports.render.characters import as_text
from reports.render.html_parts import Chip
from reports.render.html_view import view_of

TEMPLATE, CHIP, STYLE, SCRIPT = "board.html", "chip.html", "board.css", "board.js"
_POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def render_html(board: Board) -> str:
    """The whole page as one text."""
    return "".join(html_pieces(board))


def html_pieces(board: Board) -> Iterator[str]:
    """The page in pieces, for a board that one text would not be kept for.

    Limits: of the tests of a claim those that did not pass come first and the page holds so many that a browser still
    opens it; each place says how many it left out.
    """
    engine = _engine()
    style, script = _source(STYLE), _source(SCRIPT)
    policy = _POLICY.format(style=_digest(style), script=_digest(script))
    template, chip = engine.get_template(TEMPLATE), engine.get_template(CHIP)

    @lru_cache(maxsize=4096)  # a page shows few different ones, tens of thousands of times
    def show_chip(each: Chip) -> Markup:
        return Markup(chip.render(each=each))  # noqa: S704 - every expression of it is escaped

    yield from template.generate(
        view=view_of(board),
        policy=policy,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - as well
        chip=show_chip,
    )
    yield "\n"


@lru_cache(maxsize=1)
def _engine() -> Environment:
    return Environment(
        loader=PackageLoader("reports.render", "page"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: object) -> object:
    """What an expression comes to on the page: text without controls and marks that reorder or hide; never nothing."""
    return value if isinstance(value, Markup) else as_text(str(value))


def _source(name: str) -> str:
    engine = _engine()
    assert engine.loader is not None  # noqa: S101 - given above
    return engine.loader.get_source(engine, name)[0]


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
