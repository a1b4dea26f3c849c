"""Reading bundles back from the disk, with every doubt named.

Room: file input. Only lanes.bundle is written for; nothing here repairs, skips or raises.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import math
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, cast

from lanes.bundle import (
    HEADER,
    MAX_SHARDS,
    RECORDS,
    SCHEMA,
    TRAILER,
    Bundle,
    BundleHeader,
    BundleProblem,
    BundleTrailer,
    ExpectedItem,
    next_digest,
    start_digest,
)
from lanes.errors import EvidenceError
from lanes.evidence_files import read_plain_file
from lanes.record import Json, JsonObject, Record, Subject, digest_bytes
from lanes.record_form import RECORD_SHAPE, SCHEMA_NEWER, has_own_digest, record_from_json, subject_from_json


def read_bundle(folder: Path) -> Bundle:
    """Read one bundle; what cannot be believed becomes a problem, never an exception and never silence."""
    name = folder.name if folder.parent.name == "" else f"{folder.parent.name}/{folder.name}"
    problems: list[BundleProblem] = []

    def report(code: str, where: str, text: str) -> None:
        problems.append(BundleProblem(code, f"{name}/{where}", text))

    header = _read_header(folder, report)
    digest = digest_bundle(folder)
    if header is None:
        parts = folder.parts
        lane = parts[-2] if len(parts) > 1 else ""
        empty = BundleHeader(lane=lane, run_id="", subject=Subject())
        return Bundle(empty, (), None, tuple(problems), name, digest)
    records, count, chain = _read_records(folder, header, report)
    trailer = _read_trailer(folder, header, report)
    if trailer is not None and trailer.run_id != header.run_id:
        report("trailer", TRAILER, f"the trailer is of run {trailer.run_id!r}, the header of run {header.run_id!r}")
    elif trailer is not None and (trailer.count, trailer.digest) != (count, chain):
        report("trailer", TRAILER, f"the trailer counts {trailer.count} records, {count} were read, or a line changed")
    return Bundle(header, records, trailer, tuple(problems), name, digest)


def digest_bundle(folder: Path) -> str:
    """The digest of a bundle's three files as they lie there; a file that is missing counts as an empty one."""
    digest = hashlib.sha256()
    for part in (HEADER, RECORDS, TRAILER):
        digest.update(digest_bytes(_bytes_of(folder / part)).encode("ascii"))
    return "sha256:" + digest.hexdigest()


_MAX_DIGITS = 18  # such a number fits into 64 bits everywhere
_LIKENESS = bytes.maketrans(b"123456789:[- \t\n\r", b"000000000,,,,,,,")  # digits alike, and what stands before them
_LONG_NUMBER = b"," + b"0" * _MAX_DIGITS
_DEPTHS = frozenset({"", "D1", "D2", "D3"})
_PROBLEMS = {RECORD_SHAPE: "damaged", SCHEMA_NEWER: "schema-newer"}
_Report = Callable[[str, str, str], None]


def _read_header(folder: Path, report: _Report) -> BundleHeader | None:
    document = _read_object(folder / HEADER, report)
    if document is None:
        return None
    schema = document.get("schema")
    if schema != SCHEMA:
        code = "schema-newer" if isinstance(schema, str) and schema.startswith("bundle/") else "unreadable"
        report(code, HEADER, f"schema {schema!r:.80} is not {SCHEMA!r}; read it with the version that wrote it")
        return None
    try:
        header = _header_from_json(document)
    except (EvidenceError, TypeError, KeyError, ValueError) as error:
        report("unreadable", HEADER, f"a field is missing or has the wrong type: {error!s:.200}")
        return None
    expected = document.get("expected")
    if isinstance(expected, Mapping) and (expected.get("digest"), expected.get("count")) != (
        header.expected_digest,
        len(header.expected),
    ):
        report("expected", HEADER, "the expected item list does not have the digest and count it names")
    return header


def _read_records(folder: Path, header: BundleHeader, report: _Report) -> tuple[tuple[Record, ...], int, str]:
    path = folder / RECORDS
    chain = start_digest(header)
    try:
        lines = read_plain_file(path).split(b"\n")
    except FileNotFoundError:
        report("no-records", RECORDS, "the file is missing")
        return (), 0, chain
    except OSError as error:
        report("unreadable", RECORDS, _words(error))
        return (), 0, chain
    records: list[Record] = []
    last = lines.pop()
    if last:
        report("torn", f"{RECORDS}:{len(lines) + 1}", "the last line has no end; its item cannot be judged")
    for number, line in enumerate(lines, start=1):
        chain = next_digest(chain, line)
        where = f"{RECORDS}:{number}"
        try:
            document = _parse(line)
        except (ValueError, RecursionError):  # the second for a line that is nested too deep to be a record
            report("damaged", where, "the line is no JSON")
            continue
        if not isinstance(document, dict):
            report("damaged", where, "the line is no JSON object")
            continue
        try:
            record = record_from_json(document)
        except EvidenceError as error:
            report(_PROBLEMS.get(error.error_code, "damaged"), where, error.what)
            continue
        if not has_own_digest(document, line):
            report("record-id", where, f"the record of {record.node_id} is not what its record_id says")
            continue
        if record.schema == document["schema"]:
            record.keep_digest(str(document["record_id"]))
        records.append(record)
    return tuple(records), len(lines), chain


def _read_trailer(folder: Path, header: BundleHeader, report: _Report) -> BundleTrailer | None:
    if not os.path.lexists(folder / TRAILER):
        report("no-trailer", TRAILER, f"the writer of lane {header.lane!r} did not finish")
        return None
    document = _read_object(folder / TRAILER, report)
    if document is None:
        return None
    known = {"schema", "run_id", "count", "digest", "canary_end", "exit_code", "breaches", "judged"}
    if document.get("judged") is not True:
        report("unjudged", TRAILER, f"the run of lane {header.lane!r} ended, and its parent did not live to judge it")
    try:
        return BundleTrailer(
            run_id=_text(document, "run_id"),
            count=_number(document, "count"),
            digest=_text(document, "digest"),
            canary_end=_text(document, "canary_end", ""),
            exit_code=_number(document, "exit_code", 0),
            breaches=_text_list(document.get("breaches", [])),
            extra={name: value for name, value in document.items() if name not in known},
            is_judged=document.get("judged") is True,
        )
    except (TypeError, KeyError, ValueError) as error:
        report("trailer", TRAILER, f"a field is missing or has the wrong type: {error!s:.200}")
        return None


def _header_from_json(document: JsonObject) -> BundleHeader:
    shard = cast("JsonObject", document["shard"])
    expected = cast("JsonObject", document["expected"])
    selected = document.get("selected")
    known = set(BundleHeader("", "", Subject()).to_json())
    index, total = _number(shard, "index"), _number(shard, "total")
    if not 1 <= index <= total <= MAX_SHARDS:
        raise ValueError(f"shard {index} of {total} is none; 1 to {MAX_SHARDS} are")
    depth = _text(document, "guard_depth", "")
    if depth not in _DEPTHS:
        raise ValueError(f"guard_depth is {depth!r:.80}")
    not_run = document.get("not_run_code")
    configuration = document.get("configuration", {})
    if not isinstance(configuration, Mapping):
        raise TypeError("configuration is no object")
    return BundleHeader(
        lane=_text(document, "lane"),
        run_id=_text(document, "run_id"),
        subject=subject_from_json(document["subject"]),
        shard_index=index,
        shard_total=total,
        expected=_items_from_json(expected["items"]),
        selected=None if selected is None else _text_list(selected),
        deselected=_items_from_json(document.get("deselected", [])),
        configuration={name: str(value) for name, value in configuration.items()},
        lane_mark=_text(document, "lane_mark", ""),
        tox_env=_text(document, "tox_env", ""),
        marker=_text(document, "marker", "tox"),
        guard_depth=depth,
        canary_start=_text(document, "canary_start", ""),
        keys_removed=_number(document, "keys_removed", 0),
        not_run_code=None if not_run is None else _text(document, "not_run_code"),
        not_run_text=_text(document, "not_run_text", ""),
        started_at=_text(document, "started_at", ""),
        extra={name: value for name, value in document.items() if name not in known},
    )


def _items_from_json(value: Json) -> tuple[ExpectedItem, ...]:
    return _shared_items(marshal.dumps(cast("list[str]", value), 2))


@lru_cache(maxsize=1)
def _shared_items(spelled: bytes) -> tuple[ExpectedItem, ...]:
    """The shards of a run, which are read one after the other, name one list."""
    value = marshal.loads(spelled)  # noqa: S302 - our own bytes, of a moment ago
    return tuple(ExpectedItem(_text(item, "node_id"), _text_list(item["claim_ids"])) for item in value)


def _text(document: JsonObject, name: str, default: str | None = None) -> str:
    value = document[name] if default is None else document.get(name, default)
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _number(document: JsonObject, name: str, default: int | None = None) -> int:
    value = document[name] if default is None else document.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is no whole number")
    return value


def _text_list(value: Json) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError("a list of texts was expected")
    return tuple(value)


def _read_object(path: Path, report: _Report) -> dict[str, Json] | None:
    try:
        document = _parse(read_plain_file(path))
    except FileNotFoundError:
        report("unreadable", path.name, "the file is missing")
        return None
    except OSError as error:
        report("unreadable", path.name, _words(error))
        return None
    except (ValueError, RecursionError) as error:  # the second for what is nested too deep to be evidence
        report("unreadable", path.name, f"{error!s:.200}")
        return None
    if not isinstance(document, dict):
        report("unreadable", path.name, "the file holds no JSON object")
        return None
    return document


def _parse(data: bytes) -> Any:
    """Read JSON as evidence is written: numbers that are numbers, and none that other readers would round or refuse.

    Raises: ValueError, RecursionError.
    """
    encoding = json.detect_encoding(data)
    is_plain = encoding == "utf-8" and not data[:1].isdigit() and _LONG_NUMBER not in data.translate(_LIKENESS)
    return (_QUICK if is_plain else _STRICT).decode(data.decode(encoding, "surrogatepass"))


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text[:40])


def _whole(text: str) -> int:
    return int(text) if len(text) <= _MAX_DIGITS else _refuse(f"{text[:40]}…")


# A call for every whole number takes as long as all the rest of a line: _QUICK reads those that have no long one.
_QUICK = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=_whole)


def _bytes_of(path: Path) -> bytes:
    try:
        return read_plain_file(path)
    except OSError:
        return b""


def _words(error: OSError) -> str:
    return f"it cannot be read: {error.strerror or error}"
