"""Known faults of session logs, met with the files people sent."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from harness.log.events import (
    AssistantMessage,
    ForeignPayload,
    InboxSpliced,
    RemovedItem,
    SessionHeader,
    StepStart,
    ToolCall,
    ToolResult,
    TurnStart,
    UserMessage,
)
from harness.log.json_form import encode_line, event_to_json
from harness.log.load import encode_events, encode_header
from harness.log.session_log import SessionLog
from harness.log.store import SessionStore
from harness.model.call import ModelRequest
from harness.model.messages import (
    CallId,
    Message,
    MessageId,
    ModelSource,
    SessionId,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSource,
    UserSource,
    text_of,
    tool_calls_of,
)
from harness.wire.anthropic_messages import encode_body, encode_request

CASES = Path(__file__).parents[2] / "cases"
FILES = {
    "logs/B13a-torn-tail.jsonl": "a00cb1f9af0566e5889ae104c6cb0e8e910637757fe3c1292eacc5a8cf5a3069",
    "logs/B13b-complete-tail-no-newline.jsonl": "f5b35c81942e11a3544be2627686b0d80949c193236bdf1145def7cb9a2a7df5",
    "logs/B13c-torn-inside-character.jsonl": "0c7e0f0ee03ad89e2ee381f7d889e1cda7cc095a256f61b59b784c8f529279ef",
    "logs/B15-two-writers.json": "262d50ee94e581aeadba4aced53da91df2021f2c88d5c176e40170ade785531c",
    "logs/B16-strings.json": "04ab69e9cc1a0977531f4adf4f2aacc0cc89119030d995fea25b02d0dc40bf05",
    "logs/B19-dangling-calls.jsonl": "9f7366c5c12983dad4eec7946062e5d3ca415f46dff626f796cf91c426038a0d",
    "logs/B19-expected-requests.json": "e59cd8381a9745efea54b4954114e5cca1161c43d28a6c3f72a27610fd394c76",
    "logs/B20a-started-not-finished.jsonl": "53eb5b65b5a69df1847fae4f75124bdc345a93739bd47871fc658381a489a555",
    "logs/B20b-finished-model-call-lost.jsonl": "6ecbb3051097adc3f0d42efe755091ae82df1a8a7d9cc7aca140f7837b97f357",
    "flows/B20-resume.json": "9673f99a20679c17200acb80fcc5c7b86615b2654fe9ba3583113e34a11835bf",
}
S = SessionId("s-case")


@pytest.mark.parametrize("name", FILES)
def test_the_case_files_are_byte_exact(name):
    assert hashlib.sha256((CASES / name).read_bytes()).hexdigest() == FILES[name]


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    ticks = itertools.count(100)
    return SessionStore(tmp_path, clock=lambda: next(ticks))


class Translation:
    """The placeholder records of a case as records of our own, one for one, with an open turn around calls."""

    def __init__(self, records: list[dict]) -> None:
        ticks = itertools.count(1)
        self.log = SessionLog(SessionHeader(S, 1), clock=lambda: next(ticks))
        in_turn = any("tool_calls" in record for record in records)
        seqs: dict[str, int] = {}
        for record in records:
            match record["type"]:
                case "user_message":
                    message = _user(record["text"], f"m{record['seq']}")
                    if in_turn:
                        self.log.append(InboxSpliced("next-turn", 0, inserted=(message,)))
                        self.log.append(TurnStart(1))
                        self.log.append(InboxSpliced("next-turn", 0, (RemovedItem(message.id, "claimed", 1),)))
                        self.log.append(StepStart(1, 1))
                    self.log.append(UserMessage(message))
                case "assistant_message":
                    self.log.append(_assistant(record), source_event_seqs=())
                case "tool_started":
                    call = _call_of(self.log, record["tool_call_id"])
                    seqs[call.id] = self.log.append(ToolCall(1, 1, call.id, call.name, call.arguments)).seq
                case "tool_finished":
                    result = _result(record["tool_call_id"], record["text"])
                    self.log.append(result, source_event_seqs=(seqs[record["tool_call_id"]],))

    def data(self) -> bytes:
        return encode_header(self.log.header) + encode_events(self.log.since(0))


def _user(text: str, message_id: str) -> Message:
    return Message(MessageId(message_id), "user", (TextBlock(text),), UserSource())


def _assistant(record: dict) -> AssistantMessage:
    blocks = [TextBlock(record["text"])] if record.get("text") else []
    blocks += [
        ToolCallBlock(CallId(call["id"]), call["name"], json.dumps(call["arguments"], separators=(",", ":")))
        for call in record.get("tool_calls", ())
    ]
    return AssistantMessage(
        1, 1, Message(MessageId(f"a{record['seq']}"), "assistant", tuple(blocks), ModelSource("mock", "m"))
    )


def _call_of(log: SessionLog, call_id: str) -> ToolCallBlock:
    return next(call for message in log.messages() for call in tool_calls_of(message) if call.id == call_id)


def _result(call_id: str, text: str) -> ToolResult:
    block = ToolResultBlock(CallId(call_id), (TextBlock(text),))
    return ToolResult(1, 1, Message(MessageId(f"r-{call_id}"), "user", (block,), ToolSource(CallId(call_id))))


def _read(name: str) -> tuple[list[dict], bytes]:
    """The complete records of a case file, and what stands behind its last newline."""
    *lines, tail = (CASES / name).read_bytes().split(b"\n")
    return [json.loads(line) for line in lines], tail


def _place(store: SessionStore, data: bytes) -> Path:
    path = store.path_of(S, None)
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def _records(log: SessionLog) -> int:
    """Records as the case counts them: the start of the session and each message."""
    return 1 + len(log.messages())


B13 = {"a": ("B13a-torn-tail.jsonl", 3, True), "c": ("B13c-torn-inside-character.jsonl", 3, True)}


@pytest.mark.parametrize(("name", "seen", "damaged"), B13.values(), ids=B13.keys())
async def test_case_B13_a_torn_tail_is_told_and_the_next_record_gets_a_line_of_its_own(store, name, seen, damaged):
    records, tail = _read(f"logs/{name}")
    torn_text = tail.split(b'"text":"', 1)[1]
    next_line = encode_line(event_to_json(Translation([*records, {**records[1], "seq": 4, "text": "@@"}]).log[2]))
    torn = next_line.split(b"@@", 1)[0] + torn_text
    path = _place(store, Translation(records).data() + torn)
    first = await store.resume(S)
    assert (_records(first.log), first.damage is not None) == (seen, damaged)
    first.log.append(UserMessage(_user("new", "m-new")))
    await first.close()
    second = await store.resume(S)
    assert (_records(second.log), text_of(second.log.messages()[-1]), second.damage) == (seen + 1, "new", None)
    await second.close()
    assert torn_text not in path.read_bytes()
    assert [type(json.loads(line)) for line in path.read_bytes().splitlines()] == [dict] * (1 + len(second.log))


async def test_case_B13_a_whole_record_without_its_newline_is_kept(store):
    records, tail = _read("logs/B13b-complete-tail-no-newline.jsonl")
    path = _place(store, Translation([*records, json.loads(tail)]).data()[:-1])
    first = await store.resume(S)
    assert (_records(first.log), first.damage) == (4, None)
    first.log.append(UserMessage(_user("new", "m-new")))
    await first.close()
    second = await store.resume(S)
    assert (_records(second.log), text_of(second.log.messages()[-1])) == (5, "new")
    await second.close()
    assert [type(json.loads(line)) for line in path.read_bytes().splitlines()] == [dict] * (1 + len(second.log))


B15 = json.loads((CASES / "logs/B15-two-writers.json").read_bytes())


class Writers:
    """The two processes of the case."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.path = _place(store, encode_header(SessionHeader(S, 1)))
        places = [str(Path(harness.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
        self.children = []
        for writer in B15["writers"]:
            sizes = map(str, writer["text_bytes"])
            command = [sys.executable, str(Path(__file__).with_name("writer_child.py")), str(store.root), S]
            child = subprocess.Popen(
                [*command, writer["name"], str(writer["records"]), *sizes],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            self.children.append(child)
            assert child.stdout.readline() == "ready\n"

    def go(self, *children: int) -> None:
        for child in children:
            self.children[child].stdin.write("go\n")
            self.children[child].stdin.flush()

    def hear(self, child: int, last: str) -> list[str]:
        """What the child says up to a line that begins so."""
        lines = [self.children[child].stdout.readline()]
        while lines[-1] and not lines[-1].startswith((last, "refused")):
            lines.append(self.children[child].stdout.readline())
        return lines

    def stop(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()
            child.stdin.close()
            child.stdout.close()

    def check(self, name: str) -> None:
        """Every line one object, seqs unique and counting, exactly the winner's records."""
        lines = [json.loads(line) for line in self.path.read_bytes().split(b"\n")[:-1]]
        assert [line["seq"] for line in lines[1:]] == list(range(len(lines) - 1))
        writer = next(writer for writer in B15["writers"] if writer["name"] == name)
        sizes = itertools.cycle(writer["text_bytes"])
        expected = [f"{name}-{at}-".ljust(next(sizes), "x") for at in range(writer["records"])]
        assert [text_of(message) for message in self.store.inspect(S).log.messages()] == expected


@pytest.fixture
def writers(store: SessionStore) -> Iterator[Writers]:
    found = Writers(store)
    yield found
    found.stop()


def test_case_B15_of_two_that_start_together_one_is_refused_at_once_and_the_other_stores_everything(store, writers):
    writers.go(0, 1)
    said = [writers.hear(child, "done") for child in (0, 1)]
    winner = next(child for child in (0, 1) if said[child][-1] == "done\n")
    loser = 1 - winner
    assert said[loser][-1].startswith(f"refused LOG_BUSY {writers.path} ")
    assert f"process {writers.children[winner].pid}" in said[loser][-1]
    assert (len(store.list()), store.list()[0].problem, store.inspect(S).live) == (1, None, True)
    writers.check(B15["writers"][winner]["name"])
    writers.go(winner)
    assert writers.hear(winner, "closed") == ["closed\n"]
    writers.check(B15["writers"][winner]["name"])


def test_case_B15_a_second_opener_is_refused_while_the_first_is_idle(writers):
    writers.go(0)
    assert writers.hear(0, "done")[-1] == "done\n"
    writers.go(1)
    assert writers.hear(1, "done")[-1].startswith("refused LOG_BUSY")
    writers.check("W1")


def test_case_B15_a_killed_holder_lets_the_next_one_in_without_anybody_deleting_a_lock(writers):
    writers.go(0)
    assert writers.hear(0, "durable")[-1].startswith("durable")
    writers.children[0].kill()
    writers.children[0].wait()
    writers.go(1)
    assert writers.hear(1, "done")[-1] == "done\n"
    lines = [json.loads(line) for line in writers.path.read_bytes().split(b"\n")[:-1]]
    assert [line["seq"] for line in lines[1:]] == list(range(len(lines) - 1))


B16 = json.loads((CASES / "logs/B16-strings.json").read_bytes())
PLACES = {
    "tool-call argument": lambda text: AssistantMessage(
        1,
        1,
        Message(
            MessageId("a"),
            "assistant",
            (ToolCallBlock(CallId("c"), "write", json.dumps({"t": text})), ToolCallBlock(CallId("d"), "raw", text)),
            ModelSource("mock", "m"),
        ),
    ),
    "tool result text": lambda text: _result("c", text),
    "assistant text": lambda text: _assistant({"seq": 1, "text": text}),
    "user message": lambda text: UserMessage(_user(text, "m")),
    "file name listed by a tool": lambda text: _result(
        "c", f"{text}\n{os.fsdecode(bytes.fromhex(B16['file_name_bytes_hex']))}"
    ),
    "session title": lambda text: ForeignPayload("session/title", {"title": text, text: 1}),
}


def test_case_B16_every_place_of_the_case_is_tried():
    assert set(PLACES) == set(B16["places"])


@pytest.mark.parametrize("text", B16["strings"], ids=range(len(B16["strings"])))
@pytest.mark.parametrize("place", PLACES)
async def test_case_B16_text_that_cannot_be_encoded_is_stored_and_comes_back_as_it_was(store, place, text):
    writer = await store.create(SessionHeader(S, 1))
    writer.log.append(TurnStart(1))
    writer.log.append(PLACES[place](text), ignorable=place == "session title")
    writer.log.append(TurnStart(2))
    await writer.close()
    data = writer.path.read_bytes()
    assert (data.decode("utf-8").encode("utf-8"), list(store.inspect(S).log)[:3]) == (data, list(writer.log))


async def test_case_B16_a_session_whose_id_is_half_a_character_is_stored_too(store):
    for at, text in enumerate(B16["strings"]):
        writer = await store.create(SessionHeader(SessionId(text), 1, cwd=f"/{text}"))
        writer.log.append(TurnStart(at + 1))
        await writer.close()
    assert sorted(listing.header.id for listing in store.list()) == sorted(B16["strings"])


def _projection(messages: tuple[Message, ...]) -> list[dict]:
    """Messages in the words of the case's expected request."""
    found: list[dict] = []
    for message in messages:
        block = message.content[0]
        if isinstance(block, ToolResultBlock):
            text = "".join(part.text for part in block.content)
            found.append({"role": "tool", "tool_call_id": block.tool_call_id, "content": text})
            continue
        found.append({"role": message.role, "content": text_of(message)})
        if calls := tool_calls_of(message):
            found[-1]["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in calls
            ]
    return found


async def test_case_B19_a_call_without_result_gets_one_on_reopening_and_nothing_is_run(store):
    records, tail = _read("logs/B19-dangling-calls.jsonl")
    translated = Translation(records)
    _place(store, translated.data())
    writer = await store.resume(S)
    added = writer.log.since(len(translated.log))
    writer.log.append(UserMessage(_user("continue", "m-continue")))
    await writer.close()
    forms = json.loads((CASES / "logs/B19-expected-requests.json").read_bytes())
    expected = forms["openai_messages"]
    found = _projection(writer.log.messages())
    note = found[3]["content"]
    expected[3]["content"] = note
    assert (found, tail) == (expected, b"")
    assert ("interrupted" in note, "unknown" in note) == (True, True)
    assert [event.type for event in added] == ["tool/result", "step/end", "turn/end", "session/end-seed"]
    request = ModelRequest("anthropic", "m", writer.log.messages())
    sent = json.loads(encode_body(encode_request(request)))["messages"]
    forms["anthropic_messages"][2]["content"][1]["content"] = note
    assert sent == forms["anthropic_messages"]


async def test_case_B20_a_call_that_was_started_is_reported_unknown_and_not_run_again(store):
    expected = json.loads((CASES / "flows/B20-resume.json").read_bytes())["runs"][0]["expected"]
    translated = Translation(_read("logs/B20a-started-not-finished.jsonl")[0])
    _place(store, translated.data())
    writer = await store.resume(S)
    await writer.close()
    added = writer.log.since(len(translated.log))
    result = writer.log.messages()[-1].content[0]
    assert (result.tool_call_id, result.is_error) == (expected["first_request_has_result_for"], True)
    assert "outcome is unknown" in result.content[0].text
    assert not {"succeeded", "failed"} & set(result.content[0].text.split())
    assert sum(event.type == "tool/call" for event in added) == expected["append_line_executions"]


async def test_case_B20_a_stored_result_is_used_as_it_is(store):
    expected = json.loads((CASES / "flows/B20-resume.json").read_bytes())["runs"][1]["expected"]
    translated = Translation(_read("logs/B20b-finished-model-call-lost.jsonl")[0])
    _place(store, translated.data())
    writer = await store.resume(S)
    await writer.close()
    result = writer.log.messages()[-1].content[0]
    assert (result.tool_call_id, result.content[0].text, result.is_error) == (
        expected["first_request_has_result_for"],
        expected["that_result"],
        False,
    )
    added = writer.log.since(len(translated.log))
    assert [event.type for event in added] == ["step/end", "turn/end", "session/end-seed"]
