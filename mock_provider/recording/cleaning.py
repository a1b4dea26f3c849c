"""Secrets out of a recording, before anything of it is written: found in every exchange, hidden in all of them.

Room: pure; the recording comes in. A finding names a kind, never a value.

Headers are kept by an allow-list. Whatever stands under a secret name, in headers, queries and bodies of requests and
answers, is a secret wherever else it stands, in plain, percent-encoded, JSON-escaped and base64 form.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from mock_provider.json_values import Json
from mock_provider.recording.exchanges import Clean, Seen
from mock_provider.recording.fragments import Span, clean_fragments, joined_texts
from mock_provider.recording.frames import STREAM_TYPE, Frame, encode_frames, parse_frames, read_frames, spell_frames
from mock_provider.recording.said import read_json
from mock_provider.recording.said_bedrock import inside_chunk
from mock_provider.redaction import MARK, MIN_SECRET, Redactor, find_shapes, secrets_of_caller
from mock_provider.secret_names import is_secret_name, is_secret_query

HIDDEN = "redacted"  # the word that cassettes use
REQUEST_HEADERS = frozenset({"accept", "content-type", "anthropic-version", "anthropic-beta"})
ANSWER_HEADERS = frozenset({"content-type", "retry-after", "retry-after-ms", "x-mock-provider"})
KEPT_IN_CASSETTES = frozenset({"accept", "content-type"})
# Names that a reader of cassettes takes for secrets in requests, beside those that end like one.
_EXACT_NAMES = frozenset({"auth", "signature"})
_PROBABILITIES = frozenset({"logprob", "logProbability"})  # beside them a "token" is a piece of text


def _bare(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum() and character.isascii())


class Cleaner:
    """Finds the secrets of a whole recording, then hides them.

    Shape: names are further headers and fields that hold secrets. learn() every exchange before the first clean().
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = frozenset(map(_bare, names))
        self._values: set[str] = set()
        self._redactor = Redactor()
        self._forms: tuple[tuple[str, str], ...] = ()

    # Finding

    def learn(self, seen: Seen) -> None:
        """Take the secrets of an exchange in."""
        headers = dict(seen.headers)
        query = urlsplit(seen.target).query
        self._add(secrets_of_caller(headers, query))
        self._add(value for name, value in headers.items() if _bare(name) in self._names)
        self._add(value for name, value in parse_qsl(query, keep_blank_values=True) if self._is_secret_query(name))
        for name, value in seen.answer_headers:
            if is_secret_name(name) or _bare(name) in self._names:
                self._add([value, *_cookie_values(value)])
        for data, is_request in ((seen.plain_body(), True), (seen.plain_answer(), False)):
            frames = None if is_request else _frames(seen, data)
            texts = [(data or b"").decode("utf-8", "replace")] if frames is None else list(_payloads(frames))
            for text in texts:
                for document in _documents(text):
                    self._add(self._texts(document, is_request=is_request))
        self._prepare()

    def _add(self, values: Iterable[str]) -> None:
        self._values.update(value for value in values if len(value) >= MIN_SECRET and value != HIDDEN)

    def _prepare(self) -> None:
        forms: dict[str, str] = {}
        for value in sorted(self._values):
            for kind, form in forms_of(value):
                forms.setdefault(form, kind)
        self._forms = tuple(sorted(((kind, form) for form, kind in forms.items()), key=lambda pair: -len(pair[1])))
        self._redactor = Redactor(tuple(form for _, form in self._forms))

    def _is_secret(self, name: str, *, is_request: bool) -> bool:
        bare = _bare(name)
        return is_secret_name(name) or bare in self._names or (is_request and bare in _EXACT_NAMES)

    def _is_secret_query(self, name: str) -> bool:
        return is_secret_query(name) or _bare(name) in self._names

    def _texts(self, value: Json, *, is_request: bool) -> Iterable[str]:
        """The texts under secret names."""
        if isinstance(value, list):
            for item in value:
                yield from self._texts(item, is_request=is_request)
        elif isinstance(value, dict):
            for key, item in value.items():
                if not self._is_secret(key, is_request=is_request) or value.keys() & _PROBABILITIES:
                    yield from self._texts(item, is_request=is_request)
                elif isinstance(item, str):
                    yield item
                elif isinstance(item, list):
                    yield from (one for one in item if isinstance(one, str))
                else:
                    yield from self._texts(item, is_request=is_request)

    # Hiding

    def clean(self, seen: Seen, upstream: str) -> Clean | None:
        """The exchange without its secrets; None when a body is no text.

        Shape: upstream is where it was sent.
        """
        body, answer = seen.plain_body(), seen.plain_answer()
        if body is None or answer is None:
            return None
        frames = _frames(seen, answer)
        try:
            body_text = body.decode("utf-8")
            parts = [self._document(answer.decode("utf-8"), is_request=False)] if frames is None else []
        except UnicodeDecodeError:
            return None
        if frames is None:
            cleaned = parts[0]
            parts = _events(cleaned)
            sent = [part.encode("utf-8") for part in parts]
        else:
            kept = self._cleaned_frames(frames)
            cleaned, sent = spell_frames(kept), encode_frames(kept)
        pieces = tuple((offset, len(piece)) for offset, piece in seen.pieces if piece)
        if b"".join(sent) != seen.answer:  # something was taken out: the sizes are those of the events left
            last = seen.pieces[-1][0] if seen.pieces else 0
            pieces = tuple((last, len(event)) for event in sent)
        target = self._target(seen.target)
        return Clean(
            number=seen.number,
            method=seen.method,
            uri=_uri(upstream, target),
            target=target,
            headers=self._headers(seen.headers.items(), REQUEST_HEADERS),
            body=self._document(body_text, is_request=True),
            status=seen.status,
            reason=seen.reason,
            answer_headers=self._headers(seen.answer_headers, ANSWER_HEADERS),
            answer=cleaned,
            pieces=pieces,
            has_frames=frames is not None,
        )

    def _cleaned_frames(self, frames: Sequence[Frame]) -> list[Frame]:
        """Frames cleaned; what a chunk holds is spelled in base64, so it is cleaned inside."""
        insides = [inside_chunk(one.payload) for one in frames]
        shown = [one.payload if inner is None else inner for one, inner in zip(frames, insides, strict=True)]
        kept: list[Frame] = []
        for one, inner, before, joined in zip(frames, insides, shown, self._joined(shown), strict=True):
            text = self._document(joined, is_request=False)
            if text == before:
                kept.append(one)
            elif inner is None:
                kept.append(Frame(one.headers, text))
            else:
                held = base64.b64encode(text.encode("utf-8")).decode("ascii")
                kept.append(Frame(one.headers, json.dumps({"bytes": held}, separators=(",", ":"))))
        return kept

    def _joined(self, texts: Sequence[str]) -> list[str]:
        """The texts of events without what is secret only when their fragments are put together."""
        events = [read_json(text) for text in texts]
        cleaned = clean_fragments(events, self._spans, HIDDEN)
        return [
            text if new is event else json.dumps(new, ensure_ascii=False, separators=(",", ":"))
            for text, event, new in zip(texts, events, cleaned, strict=True)
        ]

    def _spans(self, text: str) -> list[Span]:
        """Where secrets stand in a text, in order; those that overlap are one."""
        found = find_shapes(text)
        for _, form in self._forms:
            found += [match.span() for match in re.finditer(re.escape(form), text)]
        spans: list[Span] = []
        for start, stop in sorted(found):
            if spans and start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
            else:
                spans.append((start, stop))
        return spans

    def text(self, text: str) -> str:
        """Hide in free text."""
        return self._redactor.text(text).replace(MARK, HIDDEN)

    def _headers(self, headers: Iterable[tuple[str, str]], allowed: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
        kept: dict[str, tuple[str, ...]] = {}
        for name, value in headers:
            lower = name.lower()
            if lower in allowed and _bare(lower) not in self._names:
                kept[lower] = (*kept.get(lower, ()), self.text(value))
        return {name: kept[name] for name in sorted(kept)}

    def _target(self, target: str) -> str:
        parts = urlsplit(target)
        pairs = [
            (name, HIDDEN if self._is_secret_query(name) else self.text(value))
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        path = self.text(parts.path)
        return f"{path}?{urlencode(pairs)}" if pairs else path

    def _document(self, text: str, *, is_request: bool) -> str:
        """A body: JSON with its secret fields hidden, event streams and JSON lines one by one, other text as text."""
        whole = self._json(text, is_request=is_request)
        if whole is not None:
            return whole
        lines = text.split("\n")
        said = [line.removeprefix("data:") for line in lines]
        for at, (before, joined) in enumerate(zip(said, self._joined(said), strict=True)):
            if joined is not before:
                end = "\r" if lines[at].endswith("\r") else ""
                lines[at] = f"data: {joined}{end}" if lines[at].startswith("data:") else f"{joined}{end}"
        return "\n".join(self._line(line, is_request=is_request) for line in lines)

    def _line(self, line: str, *, is_request: bool) -> str:
        mark = "data:" if line.startswith("data:") else ""
        cleaned = self._json(line.removeprefix(mark), is_request=is_request)
        if cleaned is None:
            return self.text(line)
        if cleaned == line.removeprefix(mark):
            return line
        end = "\r" if line.endswith("\r") else ""
        return f"{mark} {cleaned}{end}" if mark else f"{cleaned}{end}"

    def _json(self, text: str, *, is_request: bool) -> str | None:
        """JSON text without secrets, spelled as it was where nothing was hidden; None when it is none."""
        value = read_json(text)
        if not isinstance(value, dict | list):
            return None
        parts = clean_fragments(value, self._spans, HIDDEN) if isinstance(value, list) else value
        cleaned = self._value(parts, is_request=is_request)
        return text if cleaned == value else json.dumps(cleaned, ensure_ascii=False, separators=(",", ":"))

    def _value(self, value: Json, *, is_request: bool) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item, is_request=is_request) for item in value]
        if isinstance(value, dict):
            may_hide = not value.keys() & _PROBABILITIES
            return {
                self.text(key): HIDDEN
                if may_hide and isinstance(item, str) and self._is_secret(key, is_request=is_request)
                else self._value(item, is_request=is_request)
                for key, item in value.items()
            }
        return value

    # Searching

    def findings_in(self, clean: Clean) -> Sequence[str]:
        """Kinds of secrets that the fragments of a cleaned answer still add up to."""
        answer = clean.answer
        texts = [one.payload for one in parse_frames(answer)] if clean.has_frames else answer.split("\n")
        said = [inside_chunk(text) or text.removeprefix("data:") for text in texts]
        whole = read_json(answer)
        events = whole if isinstance(whole, list) else [read_json(text) for text in said]
        return self.findings("\n".join(joined_texts(events)))

    def findings(self, text: str) -> Sequence[str]:
        """Kinds of secrets that are still in a finished file, never their values; empty when it is clean."""
        found = {f"a hidden value, {kind}" for kind, form in self._forms if form in text}
        if Redactor().text(text) != text:
            found.add("something spelled like a key")
        return sorted(found)


def forms_of(value: str) -> list[tuple[str, str]]:
    """The spellings a secret may have taken, with their kinds; base64 at each of the three places it can begin at."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = [("as it is", value), ("percent-encoded", quote(value, safe="")), ("JSON-escaped", json.dumps(value)[1:-1])]
    for shift in range(3):
        spelled = base64.b64encode(b"\0" * shift + raw).decode("ascii").rstrip("=")
        # what stands at the two ends depends on the neighbours, so it is left out
        start = (0, 2, 3)[shift]
        end = len(spelled) if (shift + len(raw)) % 3 == 0 else len(spelled) - 1
        inner = spelled[start:end]
        if len(inner) >= MIN_SECRET:
            forms.append((f"base64 at place {shift}", inner))
            forms.append((f"URL-safe base64 at place {shift}", inner.replace("+", "-").replace("/", "_")))
    return [(kind, form) for kind, form in forms if len(form) >= MIN_SECRET]


def _cookie_values(value: str) -> list[str]:
    return [part.partition("=")[2].strip() for part in value.split(";") if "=" in part]


def _frames(seen: Seen, answer: bytes | None) -> list[Frame] | None:
    """The frames of an answer that is a binary event stream, as far as they are sound."""
    return read_frames(answer) if answer and STREAM_TYPE in seen.content_type else None


def _payloads(frames: Iterable[Frame]) -> Iterable[str]:
    for one in frames:
        inner = inside_chunk(one.payload)
        yield one.payload if inner is None else inner


def _documents(text: str) -> Iterable[Json]:
    """The JSON documents of a body: the whole of it, or its lines."""
    for spelled in (text, *(line.removeprefix("data:") for line in text.split("\n"))):
        value = read_json(spelled)
        if value is None:
            continue
        yield value
        if spelled is text:
            return


def _events(text: str) -> list[str]:
    parts = text.split("\n\n")
    return [f"{part}\n\n" for part in parts[:-1]] + [part for part in parts[-1:] if part]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine only."""
    parts = host.split(".")
    return host in ("localhost", "::1") or (
        len(parts) == 4 and parts[0] == "127" and all(part.isascii() and part.isdigit() for part in parts)
    )


def _uri(upstream: str, target: str) -> str:
    """The address as it is kept: a port of this machine says nothing."""
    base, wanted = urlsplit(upstream), urlsplit(target)
    host = base.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    if base.port is not None and not is_loopback(host):
        shown = f"{shown}:{base.port}"
    return urlunsplit((base.scheme, shown, wanted.path, wanted.query, ""))
