"""Claims: the sentences the project wants believed, as read from lanes/claims.toml.

Room: file input. The plugin checks the ids that tests name; reports lay the rows of the board from it.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from lanes.errors import ClaimsError
from lanes.policy import LANES

SCHEMA = "claims/1"
CLAIMS_FILE = Path(__file__).parent / "claims.toml"
FOLDERS = ("lanes",)  # what a claim may bind to, where a project does not keep its tests elsewhere
_ID = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)+")
_START = re.compile(r"\s*\[\[\s*claim\s*\]\]\s*(#.*)?")
_FIELDS = (
    "id",
    "sentence",
    "surface",
    "required",
    "optional",
    "min_answers",
    "conversations",
    "nonce",
    "local",
    "condition",
    "platforms",
    "guarded",
    "owner",
    "folders",
    "expected_usd",
)
_MANDATORY = ("id", "sentence", "surface", "owner")


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence with a stable id, and what each lane has to show for it.

    Shape: min_answers and conversations go by lane; a lane without a number asks for none (the real lane: at least
    one answer and one root conversation). condition is the failure the claim is about, if any ("429", "timeout"):
    meeting it is then no outage. expected_usd is what one night of it may cost with a hosted model, written as "0.02",
    None where nobody said. folders bind every test below them, so that a room's tests need not name the claim.
    local says that the claim is sized for the model on this machine: of the columns of the real lane that one alone is
    asked for it, and for no other claim.
    """

    id: str
    sentence: str
    surface: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    min_answers: Mapping[str, int] = field(default_factory=dict)
    conversations: Mapping[str, int] = field(default_factory=dict)
    nonce: bool = False
    local: bool = False
    condition: str | None = None
    platforms: tuple[str, ...] = ()
    guarded: bool = False
    owner: str = ""
    folders: tuple[str, ...] = ()
    expected_usd: str | None = None
    line: int = 0

    @property
    def lanes(self) -> tuple[str, ...]:
        """Every lane the claim asks for, in the order of the board."""
        return tuple(name for name in LANES if name in self.required or name in self.optional)

    def asks(self, column_id: str) -> bool:
        """Whether the claim asks for a column of the board: `LANE`, or `LANE:ENDPOINT` for a private one."""
        lane, _colon, endpoint = column_id.partition(":")
        return lane in self.lanes and (lane != "real" or self.local == (endpoint == "local"))

    def may_fill(self, column_id: str) -> bool:
        """Whether evidence of the claim fills a cell of that column, also where it does not ask for one."""
        return column_id.partition(":")[0] in self.lanes

    def answers_needed(self, lane: str) -> int:
        """The least number of model answers an observation of this claim must hold in a lane."""
        asked = self.min_answers.get(lane, 0)
        return max(asked, 1) if lane == "real" else asked

    def binds(self, node_id: str) -> bool:
        """Whether a test belongs to this claim by its folder."""
        path = node_id.partition("::")[0].replace("\\", "/")
        return any(path.startswith(folder + "/") for folder in self.folders)


@dataclass(frozen=True, slots=True)
class Claims:
    """All claims, in the order of the file."""

    by_id: Mapping[str, Claim] = field(default_factory=dict)
    where: str = "lanes/claims.toml"
    _with_folders: tuple[Claim, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_with_folders", tuple(claim for claim in self if claim.folders))

    def __iter__(self) -> Iterator[Claim]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def check_ids(self, claim_ids: Sequence[str], *, where: str) -> None:
        """Raise ClaimsError for the first id that no claim has, with the nearest one that exists."""
        for claim_id in claim_ids:
            if claim_id not in self.by_id:
                near = difflib.get_close_matches(claim_id, self.by_id, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise ClaimsError(
                    f"claim {claim_id!r} is unknown{hint}",
                    where=where,
                    expected=f"the id of a claim in {self.where}",
                    fix=f"correct the id, or add the claim to {self.where}",
                )

    def ids_for(self, node_id: str, marked: Sequence[str] = ()) -> tuple[str, ...]:
        """The claims a test speaks for: those it names, then those bound to its folder, each once."""
        if not self._with_folders and len(marked) < 2:  # asked for every record
            return tuple(marked)
        bound = [claim.id for claim in self._with_folders if claim.binds(node_id)]
        return tuple(dict.fromkeys((*marked, *bound)))


def load_claims(path: Path = CLAIMS_FILE, *, where: str = "", below: Sequence[str] = FOLDERS) -> Claims:
    """Read and check the claims file.

    Shape: where is what messages call it; below are the folders that a claim may bind to.
    Raises: ClaimsError with file, line and field.
    """
    where = where or f"{path.parent.name}/{path.name}"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ClaimsError(
            f"cannot be read: {error.strerror}", where=where, fix="restore the file from version control"
        ) from None
    except UnicodeDecodeError as error:
        raise ClaimsError(f"is not UTF-8: {error.reason} at byte {error.start}", where=where) from None
    return parse_claims(text, where=where, below=below)


def parse_claims(text: str, *, where: str = "lanes/claims.toml", below: Sequence[str] = FOLDERS) -> Claims:
    """Check the text of a claims file and return its claims.

    Raises: ClaimsError, of several mistakes with each of them in the order of the file.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the second for what is nested too deep to be a list of claims
        raise ClaimsError(f"is no TOML: {error}", where=where) from None
    mistakes: list[ClaimsError] = []
    if document.get("schema") != SCHEMA:
        found = document.get("schema")
        mistakes.append(ClaimsError(f"schema is {found!r:.80}", where=where, expected=f'schema = "{SCHEMA}"'))
    for name in document:
        if name not in {"schema", "claim"}:
            mistakes.append(ClaimsError(f"field {name!r:.80} is unknown{_near(name, ('claim',))}", where=where))
    claims = _claims_in(document.get("claim", []), text, where, below, mistakes)
    if len(mistakes) > 1:
        together = ClaimsError(f"{len(mistakes)} mistakes", where=where)
        together.parts = tuple(mistakes)
        raise together
    if mistakes:
        raise mistakes[0]
    return Claims(claims, where)


def _claims_in(
    tables: object, text: str, where: str, below: Sequence[str], mistakes: list[ClaimsError]
) -> dict[str, Claim]:
    """The claims of all tables that hold one; what is wrong with the others is added to the mistakes."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        what = "field 'claim' is no list of tables"
        mistakes.append(ClaimsError(what, where=where, expected="tables that start [[claim]]"))
        return {}
    lines = _lines_of_tables(text)
    if len(lines) != len(tables):
        message = f"{len(tables)} claims are there, {len(lines)} of them start a line with [[claim]]"
        mistakes.append(ClaimsError(message, where=where, expected="tables that start [[claim]]"))
        return {}
    claims: dict[str, Claim] = {}
    for table, start in zip(tables, lines, strict=True):
        reader = _Table(table, text, start, where, below)
        claim = reader.claim()
        if claim.id and claim.id in claims:
            reader.fail(
                "id",
                f"claim {claim.id!r} is there twice, first in line {claims[claim.id].line}",
                fix="give one of them another id",
            )
        mistakes.extend(reader.mistakes)
        claims.setdefault(claim.id, claim)
    return claims


def _lines_of_tables(text: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), start=1) if _START.fullmatch(line)]


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class _Table:
    """One [[claim]] table while it is being checked; mistakes are kept, so that all of them are told at once."""

    def __init__(
        self, table: Mapping[str, object], text: str, start: int, where: str, below: Sequence[str] = FOLDERS
    ) -> None:
        self._table = table
        self._text = text
        self._start = start
        self._where = where
        self._below = below
        self._found: list[tuple[int, ClaimsError]] = []

    @property
    def mistakes(self) -> list[ClaimsError]:
        """What is wrong with the table, in the order of its lines."""
        return [mistake for _line, mistake in sorted(self._found, key=lambda each: each[0])]

    def claim(self) -> Claim:
        """The claim as far as it can be read; it is one only where there are no mistakes."""
        for name in self._table:
            if name not in _FIELDS:
                self.fail(name, f"field {name!r} is unknown{_near(name, _FIELDS)}", f"one of {', '.join(_FIELDS)}")
        texts = {name: self._text_of(name) for name in (*_MANDATORY, "condition")}
        for name in _MANDATORY:
            if isinstance(self._table.get(name, ""), str) and not texts[name].strip():
                self.fail(name, f"field {name!r} is missing or empty", "a text")
        if texts["id"].strip() and not _ID.fullmatch(texts["id"]):
            expected = "lower case words joined by dots or hyphens, two at least"
            self.fail("id", f"id {texts['id']!r:.80} is malformed", expected)
        required, optional = self._lanes("required"), self._lanes("optional")
        for lane in required:
            if lane in optional:
                self.fail("optional", f"lane {lane!r} is both required and optional", "each lane in one list")
        if not self._table.get("required") and not self._table.get("optional"):
            self.fail("required", "no lane is asked for", "at least one lane in 'required' or 'optional'")
        asked = {*required, *optional}
        return Claim(
            id=texts["id"],
            sentence=texts["sentence"].strip(),
            surface=texts["surface"],
            required=required,
            optional=optional,
            min_answers=self._numbers("min_answers", asked),
            conversations=self._numbers("conversations", asked),
            nonce=self._flag("nonce"),
            local=self._flag("local"),
            condition=texts["condition"] or None,
            platforms=self._texts("platforms"),
            guarded=self._flag("guarded"),
            owner=texts["owner"],
            folders=self._folders(),
            expected_usd=self._amount("expected_usd"),
            line=self._start,
        )

    def fail(self, name: str, what: str, expected: str = "", fix: str = "") -> None:
        """Keep a mistake of a field, with its line, and with its name where the words do not say it."""
        line = self._start if what.endswith("missing or empty") else self._line_of(name)
        field_words = "" if f"field {name!r}" in what or what.startswith(f"{name}.") else f", field {name!r:.80}"
        where = f"{self._where}:{line}{field_words}"
        self._found.append((line, ClaimsError(what, where=where, expected=expected, fix=fix)))

    def _line_of(self, name: str) -> int:
        for number, line in enumerate(self._text.splitlines()[self._start :], start=self._start + 1):
            if _START.fullmatch(line):
                break
            if re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*[=.]", line):
                return number
        return self._start

    def _text_of(self, name: str) -> str:
        value = self._table.get(name, "")
        if isinstance(value, str):
            return value
        self.fail(name, f"field {name!r} is {value!r:.80}", "a text")
        return ""

    def _flag(self, name: str) -> bool:
        value = self._table.get(name, False)
        if isinstance(value, bool):
            return value
        self.fail(name, f"field {name!r} is {value!r:.80}", "true or false")
        return False

    def _amount(self, name: str) -> str | None:
        value = self._table.get(name)
        if value is None:
            return None
        amount = Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else Decimal(-1)
        if not amount.is_finite() or amount <= 0:
            self.fail(name, f"field {name!r} is {value!r:.80}", "an amount of USD above 0, as 0.02")
            return None
        return f"{amount:f}"

    def _texts(self, name: str) -> tuple[str, ...]:
        value = self._table.get(name, [])
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.fail(name, f"field {name!r} is {value!r:.80}", "a list of texts")
        return ()

    def _lanes(self, name: str) -> tuple[str, ...]:
        lanes = self._texts(name)
        known = tuple(lane for lane in lanes if self._is_lane(name, lane))
        if len(set(lanes)) != len(lanes):
            self.fail(name, f"field {name!r} names a lane twice", "each lane once")
        return known

    def _is_lane(self, name: str, lane: str) -> bool:
        if lane not in LANES:
            self.fail(name, f"lane {lane!r:.80} is unknown{_near(lane, tuple(LANES))}", f"one of {', '.join(LANES)}")
        return lane in LANES

    def _numbers(self, name: str, asked: set[str]) -> dict[str, int]:
        value = self._table.get(name, {})
        if not isinstance(value, dict):
            self.fail(name, f"field {name!r} is {value!r:.80}", "a table of lane = number")
            return {}
        numbers: dict[str, int] = {}
        for lane, number in value.items():
            if not self._is_lane(name, lane):
                continue
            if lane not in asked:
                self.fail(name, f"lane {lane!r} is not asked for by this claim", "a lane of 'required' or 'optional'")
            if not isinstance(number, int) or isinstance(number, bool) or number < 0:
                self.fail(name, f"{name}.{lane} is {number!r:.80}", "a whole number, 0 or more")
            else:
                numbers[lane] = number
        return numbers

    def _folders(self) -> tuple[str, ...]:
        folders = self._texts("folders")
        for folder in folders:
            is_below = any(f"{folder}/".startswith(f"{each}/") for each in self._below)
            if not is_below or folder == "lanes" or folder.endswith("/") or ".." in folder.split("/"):
                expected = (
                    f"a path from {' or '.join(f'{each}/' for each in self._below)} on, without a slash at the end"
                )
                self.fail("folders", f"folder {folder!r:.80} is malformed", expected)
        return folders
