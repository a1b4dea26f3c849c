"""Answers in binary frames: kept as lines that can be read, cleaned inside, and played as the bytes they were."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import httpx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lanes.cassette import CassettePlayer, load_cassette
from lanes.errors import CassetteError
from lanes.event_frames import STREAM_TYPE, EventFrame, decode_frames, parse_lines, spell_lines
from lanes.normalize import Place, places_of
from lanes.recording import Circumstances, RecordingTransport, compose_cassette, store_cassette
from lanes.redaction import Redactor
from mock_provider.dialects.bedrock_frames import event

KEY = "canary-key-0417"
URL = "https://models.invalid/model/m/converse-stream"
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
FRAMES = st.builds(
    EventFrame,
    st.dictionaries(TEXTS, TEXTS, max_size=3).map(lambda headers: tuple(headers.items())),
    st.one_of(TEXTS, st.sampled_from(['{"a":1}', '{"a": 1}', "[1e2]", '"a"', '{"a":1,"a":2}', '"\\ud800"', "{}\n"])),
)


class Speaking(httpx.AsyncBaseTransport, httpx.AsyncByteStream):
    """A provider that answers in these pieces."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer."""
        return httpx.Response(200, headers={"content-type": STREAM_TYPE}, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


def delta(text: str) -> bytes:
    payload = {"delta": {"text": text}, "contentBlockIndex": 0}
    return event("contentBlockDelta", json.dumps(payload, separators=(",", ":")).encode())


def chunk(text: str) -> bytes:
    inner = json.dumps({"type": "content_block_delta", "delta": {"text": text}}).encode()
    return event("chunk", json.dumps({"bytes": base64.b64encode(inner).decode()}).encode())


async def recorded(path: Path, pieces: Sequence[bytes], *places: Place) -> str:
    transport = RecordingTransport(Speaking(pieces), now_ms=lambda: 0)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.post(URL, json={"ask": "A"})
    facts = Circumstances(None, None, places)
    text = compose_cassette(transport.exchanges, Redactor(values={KEY}), facts)
    store_cassette(path, text)
    return text


async def played(path: Path, *places: Place) -> list[bytes]:
    player = CassettePlayer(path, places=places)
    async with (
        httpx.AsyncClient(transport=player) as client,
        client.stream("POST", URL, json={"ask": "A"}) as answer,
    ):
        return [piece async for piece in answer.aiter_raw()]


@given(st.lists(FRAMES, max_size=4))
def test_lines_give_back_the_frames_whatever_they_hold(frames: list[EventFrame]) -> None:
    sent = b"".join(frame.encoded() for frame in frames)
    assert decode_frames(sent) == tuple(frames)
    assert parse_lines(spell_lines(frames)) == tuple(frames)


def test_frames_are_those_that_another_hand_wrote() -> None:
    sent = delta("hi")
    assert [frame.encoded() for frame in decode_frames(sent) or ()] == [sent]


def test_a_bit_turned_anywhere_is_seen() -> None:
    sent = delta("hi")
    turned = [sent[:at] + bytes((sent[at] ^ 1 << at % 8,)) + sent[at + 1 :] for at in range(len(sent))]
    assert [one for one in turned if decode_frames(one) is not None] == []
    assert [end for end in range(1, len(sent)) if decode_frames(sent[:end]) is not None] == []


async def test_frames_are_played_as_they_came(tmp_path: Path) -> None:
    stream = delta("hi") + delta("ho")
    pieces = [stream[:7], stream[7:90], stream[90:]]
    text = await recorded(tmp_path / "one.yaml", pieces)
    assert await played(tmp_path / "one.yaml") == pieces
    body = json.loads(text)["interactions"][0]["response"]["body"]
    assert [json.loads(line)["payload"]["delta"] for line in body["frames"].splitlines()] == [
        {"text": "hi"},
        {"text": "ho"},
    ]


@pytest.mark.parametrize("make", [delta, chunk])
async def test_case_B36_a_key_in_frames_is_taken_out_whole_or_in_fragments(
    tmp_path: Path, make: Callable[[str], bytes]
) -> None:
    text = await recorded(tmp_path / "one.yaml", [make(f"it is {KEY}."), make("again canary-"), make("key-0417.")])
    frames = decode_frames(b"".join(await played(tmp_path / "one.yaml")))
    assert frames is not None
    shown = [json.loads(frame.payload) for frame in frames]
    told = [json.loads(base64.b64decode(one["bytes"])) if "bytes" in one else one for one in shown]
    assert [one["delta"]["text"] for one in told] == ["it is redacted.", "again redacted", "."]
    assert (KEY in text, base64.b64encode(KEY.encode()).decode()[:16] in text) == (False, False)


async def test_a_folder_of_this_run_is_put_back_into_sound_frames(tmp_path: Path) -> None:
    (here,), (there,) = places_of({"<workspace>": ["/srv/w-1"]}), places_of({"<workspace>": ["/srv/other-place"]})
    text = await recorded(tmp_path / "one.yaml", [delta("in /srv/w-1/x")], here)
    frames = decode_frames(b"".join(await played(tmp_path / "one.yaml", there)))
    assert frames is not None
    assert (json.loads(frames[0].payload)["delta"]["text"], "/srv/w-1" in text) == ("in /srv/other-place/x", False)


async def test_damaged_frames_are_not_kept(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="answer 1 is not text"):
        await recorded(tmp_path / "one.yaml", [delta("hi")[:-1] + b"\xff"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        pytest.param("{}\n", "holds a line that is no frame", id="no-frame"),
        pytest.param('{"headers":{"a":1},"payload":""}\n', "holds a line that is no frame", id="header-no-text"),
        pytest.param('{"headers":{},"payload":""}\n', "do not add up to the body's 16 bytes", id="other-size"),
    ],
)
async def test_lines_changed_by_hand_are_told(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "one.yaml"
    document = yaml.safe_load(await recorded(path, [delta("hi")]))
    document["interactions"][0]["response"]["body"]["frames"] = lines
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(CassetteError, match=message):
        load_cassette(path)
