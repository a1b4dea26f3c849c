"""Playing recordings: by digest, in order, each once, and nothing that was not asked for."""

import json
from pathlib import Path

import anyio
import httpx
import pytest
import yaml
from vcr.cassette import Cassette
from vcr.record_mode import RecordMode
from vcr.serializers import yamlserializer

from lanes.cassette import CassettePlayer, load_cassette
from lanes.errors import CassetteError
from lanes.interaction import canonical_json, seal_of
from lanes.local_table import load_local_row
from lanes.normalize import places_of
from lanes.recorded_origin import proof_digest, weights_of
from lanes.recording import Circumstances, RecordingTransport, compose_cassette, store_cassette
from lanes.redaction import Redactor
from lanes.witness import played_notes

CASES = Path(__file__).parents[2] / "cases" / "recordings"
CASE = json.loads((CASES / "B35-sequences.json").read_text(encoding="utf-8"))
URL = "https://models.invalid/v1/chat/completions"


class Pieces(httpx.AsyncByteStream):
    """An answer in pieces that may break off."""

    def __init__(self, pieces: list[bytes], breaks: bool = False) -> None:
        self._pieces = pieces
        self._breaks = breaks

    async def __aiter__(self):
        for piece in self._pieces:
            yield piece
        if self._breaks:
            raise httpx.RemoteProtocolError("cut")


class Speaking(httpx.AsyncBaseTransport):
    """A stand-in provider that gives its answers in order."""

    def __init__(self, *answers: list[bytes], status: int = 200, breaks: bool = False) -> None:
        self._answers = list(answers)
        self._status = status
        self._breaks = breaks

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(self._status, stream=Pieces(self._answers.pop(0), self._breaks))


async def _record(path: Path, bodies: list[object], provider: Speaking, **facts: object) -> str:
    transport = RecordingTransport(provider, now_ms=iter(range(1000)).__next__)
    async with httpx.AsyncClient(transport=transport) as client:
        for body in bodies:
            await client.post(URL, json=body)
    text = compose_cassette(
        transport.exchanges, Redactor(), Circumstances("2031-03-04T05:06:07Z", commit="c0ffee", **facts)
    )
    store_cassette(path, text)
    return text


def _said(text: str) -> list[bytes]:
    event = json.dumps({"id": f"r-{text}", "model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]})
    return [f"data: {event}\n".encode(), b"\nda", b"ta: [DONE]\n\n"]


@pytest.fixture
async def two_equal(tmp_path: Path) -> Path:
    """Case B35's recorded form: two equal requests, answered first and second."""
    path = tmp_path / "openai_chat" / "two-step.yaml"
    await _record(path, [{"ask": "A"}, {"ask": "A"}], Speaking(_said("first"), _said("second")))
    return path


async def _ask(client: httpx.AsyncClient, body: object = None) -> str:
    answer = await client.post(URL, json={"ask": "A"} if body is None else body)
    if answer.status_code != 200:
        return "unmatched error"
    return "first" if "first" in answer.text else "second"


@pytest.mark.parametrize("run", [pytest.param(run, id=run["name"].replace(" ", "-")) for run in CASE["runs"]])
async def test_case_B35_each_conversation_gets_the_recorded_answers_in_order(
    two_equal: Path, run: dict[str, list[str]]
) -> None:
    players = {name: CassettePlayer(two_equal) for name in "AB"}
    replies: list[str] = []
    for word in run["order"]:
        if word == "reset":
            players["A"].reset()
            replies.append("reset")
        elif word == "A and B together":
            said = {name: await _ask(httpx.AsyncClient(transport=players[name])) for name in "AB"}
            assert len(set(said.values())) == 1
            replies.append(f"{said['A']} for each")
        else:
            replies.append(await _ask(httpx.AsyncClient(transport=players[word])))

    assert replies == run["replies"]


async def test_case_B35_two_conversations_at_once_agree_in_fifty_rounds(two_equal: Path) -> None:
    outcomes = set()
    for _ in range(50):
        said: dict[str, list[str]] = {"A": [], "B": []}

        async def talk(name: str, heard: dict[str, list[str]]) -> None:
            async with httpx.AsyncClient(transport=CassettePlayer(two_equal)) as client:
                heard[name] += [await _ask(client), await _ask(client)]

        async with anyio.create_task_group() as group:
            group.start_soon(talk, "A", said)
            group.start_soon(talk, "B", said)
        outcomes.add(json.dumps(said, sort_keys=True))

    assert outcomes == {'{"A": ["first", "second"], "B": ["first", "second"]}'}


async def test_a_third_request_is_refused_and_named(two_equal: Path) -> None:
    player = CassettePlayer(two_equal)
    async with httpx.AsyncClient(transport=player) as client:
        said = [await _ask(client) for _ in range(3)]

    assert said == ["first", "second", "unmatched error"]
    problem = (
        "cassettes/openai_chat/two-step.yaml: request 3 arrived, 2 interactions are recorded [CASSETTE_EXHAUSTED]\n"
        "  fix: undo the change, or record again: tox -e record -- two-step   (needs a key)"
    )
    assert player.verify() == (problem,)


async def test_what_nobody_asked_for_is_named(two_equal: Path) -> None:
    player = CassettePlayer(two_equal)
    async with httpx.AsyncClient(transport=player) as client:
        await _ask(client)

    assert player.verify() == (
        "cassettes/openai_chat/two-step.yaml, interaction 2: recorded and not asked for [CASSETTE_LEFT]",
    )


@pytest.mark.parametrize(
    ("sent", "difference"),
    [
        pytest.param({"n": 1.0}, "body.n  expected 1  is 1.0", id="float-for-integer"),
        pytest.param({"n": True}, "body.n  expected 1  is true", id="boolean-for-integer"),
        pytest.param({"n": 1, "m": None}, "body.m  not expected  is null", id="extra-null"),
        pytest.param({"n": 2}, "body.n  expected 1  is 2", id="other-value"),
    ],
)
async def test_a_request_that_differs_in_a_type_or_value_is_a_miss_with_the_field(
    tmp_path: Path, sent: object, difference: str
) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    await _record(path, [{"n": 1}], Speaking(_said("first")))

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        answer = await client.post(URL, json=sent)

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "cassette_miss"
    assert difference in player.verify()[0]


async def test_a_body_with_a_key_given_twice_is_another_request(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    await _record(path, [{"n": 1}], Speaking(_said("first")))

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        answer = await client.post(URL, content=b'{"n":2,"n":1}', headers={"content-type": "application/json"})

    assert answer.status_code == 400


async def test_another_order_is_a_miss_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    await _record(path, [{"n": 1}, {"n": 2}], Speaking(_said("first"), _said("second")))

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        await client.post(URL, json={"n": 2})

    assert "it equals interaction 2: the order changed" in player.verify()[0]


async def test_the_answer_comes_in_the_recorded_pieces(two_equal: Path) -> None:
    async with (
        httpx.AsyncClient(transport=CassettePlayer(two_equal)) as client,
        client.stream("POST", URL, json={"ask": "A"}) as answer,
    ):
        pieces = [piece async for piece in answer.aiter_raw()]

    assert pieces == _said("first")


async def test_a_folder_of_this_run_is_stored_as_a_token_and_put_back(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    text = await _record(
        path,
        [{"ask": "A", "cwd": "/srv/w-1/x"}],
        Speaking(_said("first in /srv/w-1/x")),
        places=places_of({"<workspace>": ["/srv/w-1"]}),
    )

    player = CassettePlayer(path, places=places_of({"<workspace>": ["/srv/other-place"]}))
    async with httpx.AsyncClient(transport=player) as client:
        answer = await client.post(URL, json={"ask": "A", "cwd": "/srv/other-place/x"})

    assert "/srv/w-1" not in text
    assert "first in /srv/other-place/x" in answer.text
    assert player.verify() == ()


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        pytest.param(Speaking(_said("x"), status=429), "answer 1 has the status 429", id="too-many-requests"),
        pytest.param(Speaking(_said("x"), status=503), "answer 1 has the status 503", id="server-error"),
    ],
)
async def test_a_transient_error_is_not_stored_and_the_old_file_stays(
    tmp_path: Path, provider: Speaking, message: str
) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    path.parent.mkdir()
    path.write_text("old", encoding="utf-8")

    with pytest.raises(CassetteError, match=message):
        await _record(path, [{"n": 1}], provider)

    assert path.read_text(encoding="utf-8") == "old"
    assert [found.name for found in path.parent.iterdir()] == ["one.yaml"]


async def test_a_cut_answer_is_not_stored(tmp_path: Path) -> None:
    transport = RecordingTransport(Speaking(_said("x")[:1], breaks=True), now_ms=lambda: 0)
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(URL, json={})

    with pytest.raises(CassetteError, match="answer 1 was cut off"):
        compose_cassette(transport.exchanges, Redactor(), Circumstances("2031-03-04T05:06:07Z", commit=None))


def _edit(path: Path, change: object) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


def _drop_first(document: dict[str, list[object]]) -> None:
    document["interactions"].clear()


@pytest.mark.parametrize(
    ("change", "message", "code"),
    [
        pytest.param(_drop_first, "0 interactions", "CASSETTE_DAMAGED", id="no-interaction"),
        pytest.param(lambda d: d.update(extra=1), "unknown field 'extra'", "CASSETTE_FIELD", id="unknown-field"),
        pytest.param(lambda d: d.update(version=2), "version is 2", "CASSETTE_DAMAGED", id="other-version"),
        pytest.param(
            lambda d: d["interactions"][1]["response"].pop("origin"),
            "interaction 2, response: field 'origin' is missing",
            "CASSETTE_FIELD",
            id="no-origin",
        ),
        pytest.param(
            lambda d: d["interactions"][0]["response"]["pieces"].pop(),
            "do not add up to the body",
            "CASSETTE_DAMAGED",
            id="pieces",
        ),
        pytest.param(
            lambda d: d["interactions"][0]["response"]["body"].update(string=b"\x80"),
            "is not text",
            "CASSETTE_DAMAGED",
            id="binary",
        ),
    ],
)
async def test_a_damaged_cassette_is_named_by_place_and_never_taken_for_an_absent_one(
    two_equal: Path, change: object, message: str, code: str
) -> None:
    _edit(two_equal, change)

    with pytest.raises(CassetteError) as caught:
        load_cassette(two_equal)

    assert message in str(caught.value)
    assert caught.value.error_code == code


def test_an_absent_cassette_says_how_to_record_it(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="tox -e record -- nothing") as caught:
        load_cassette(tmp_path / "openai_chat" / "nothing.yaml")

    assert caught.value.error_code == "CASSETTE_MISSING"


PROOF: dict[str, object] = {
    "status": 200,
    "finished": True,
    "stream": True,
    "usage": {"prompt_tokens": 1},
    "override_variables": [],
    "peer_scope": "loopback",
    "local": {"model_digest": "sha256:" + "a" * 64, "server": "stand-in 1.0"},
}


def _prove(path: Path, proof: dict[str, object]) -> None:
    """Make the first answer of a cassette one of a model, as the recorder would."""
    digest = load_cassette(path).interactions[0].digest

    def prove(document: dict[str, object]) -> None:
        response = document["interactions"][0]["response"]
        told = {"recorded_at": "2031-03-04T02:00:00Z", "host": "loopback", "live_proof_digest": proof_digest(proof)}
        response["origin"] |= {"class": "live", "live_proof": proof, **told}
        response["origin"]["seal"] = seal_of(digest, response["body"]["string"], response["origin"])

    _edit(path, prove)


def _classes(path: Path) -> list[str]:
    return [interaction.answer_class for interaction in load_cassette(path).interactions]


async def test_an_answer_from_nobody_live_is_scripted_and_a_sealed_live_one_is_recorded(two_equal: Path) -> None:
    plain = _classes(two_equal)
    _prove(two_equal, PROOF)

    assert (plain, _classes(two_equal)) == (["scripted"] * 2, ["recorded", "scripted"])
    assert CassettePlayer(two_equal).facts()["doubts"] == []


async def test_cassettes_60_one_byte_changed_in_a_recorded_answer_makes_it_scripted_and_says_which(
    two_equal: Path,
) -> None:
    _prove(two_equal, PROOF)

    def alter(document: dict[str, object]) -> None:
        response = document["interactions"][0]["response"]
        response["body"]["string"] = response["body"]["string"].replace("first", "fIrst")

    _edit(two_equal, alter)

    assert _classes(two_equal) == ["scripted"] * 2
    assert CassettePlayer(two_equal).facts()["doubts"] == ["interaction 1: it was altered after it was recorded"]


async def test_an_answer_that_calls_itself_live_and_shows_no_model_is_scripted_and_says_why(two_equal: Path) -> None:
    _prove(two_equal, {**PROOF, "stream": False})

    assert _classes(two_equal) == ["scripted"] * 2
    assert CassettePlayer(two_equal).facts()["doubts"] == ["interaction 1: it did not come over a connection"]


def _in_usual_form(path: Path) -> Path:
    """A copy as vcrpy would write it."""
    usual = path.with_name("usual.yaml")
    usual.write_text(yamlserializer.serialize(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    return usual


async def test_a_cassette_that_nobody_asked_anything_is_wrong_in_every_exchange(two_equal: Path) -> None:
    player = CassettePlayer(two_equal)

    assert [line.partition(":")[0] for line in player.verify()] == [
        "cassettes/openai_chat/two-step.yaml, interaction 1", "cassettes/openai_chat/two-step.yaml, interaction 2",
    ]  # fmt: skip
    assert (player.facts()["consumed"], player.facts()["entries"]) == (0, 2)


async def test_vcrpy_plays_what_was_recorded_and_its_own_form_is_read_too(two_equal: Path) -> None:
    loaded = [interaction.digest for interaction in load_cassette(two_equal).interactions]
    found = Cassette.load(path=str(two_equal), record_mode=RecordMode.NONE)
    usual = _in_usual_form(two_equal)

    assert [response["body"]["string"].decode() for response in found.responses] == [
        b"".join(_said("first")).decode(), b"".join(_said("second")).decode(),
    ]  # fmt: skip
    assert [interaction.digest for interaction in load_cassette(usual).interactions] == loaded


async def test_a_request_nearer_to_a_later_exchange_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    await _record(path, [{"n": 1, "m": 1, "k": 1}, {"n": 2, "m": 2, "k": 2}], Speaking(_said("first"), _said("second")))

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        await client.post(URL, json={"n": 2, "m": 2, "k": 3})

    assert "nearer is interaction 2: body.k  expected 2  is 3" in player.verify()[0]


async def test_a_request_for_another_model_is_named_as_that(tmp_path: Path) -> None:
    path = tmp_path / "openai_chat" / "one.yaml"
    await _record(path, [{"model": "m-1"}], Speaking(_said("first")))

    player = CassettePlayer(path)
    async with httpx.AsyncClient(transport=player) as client:
        await client.post(URL, json={"model": "m-2"})

    assert '[CASSETTE_OTHER_MODEL]\n  body.model  expected "m-1"  is "m-2"' in player.verify()[0]


async def test_each_answer_carries_the_proof_of_its_own_exchange(two_equal: Path) -> None:
    _prove(two_equal, PROOF)
    player = CassettePlayer(two_equal)
    async with httpx.AsyncClient(transport=player) as client:
        await _ask(client)
        await _ask(client)

    notes = played_notes(player.answers, "cassette")
    assert [(note["class"], note["live_proof_digest"]) for note in notes] == [
        ("recorded", proof_digest(PROOF)), ("scripted", None),
    ]  # fmt: skip


def test_canonical_json_keeps_types_apart() -> None:
    assert len({canonical_json(value) for value in (1, 1.0, True, "1", None)}) == 5


def test_what_the_local_model_said_is_recorded_from_the_committed_weights() -> None:
    folder = Path(__file__).parents[3] / "cassettes" / "openai_chat"
    found = [each for path in sorted(folder.glob("small-*.yaml")) for each in load_cassette(path).interactions]

    assert {each.answer_class for each in found} == {"recorded"}, [each.doubt for each in found]
    assert {weights_of(each.origin) for each in found} == {load_local_row().digest}
