"""What a host chooses for a session: its id, its request options, and who is asked before something changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.assemble import Assembled, RequestOptions, assemble
from harness.errors import SessionExistsError
from harness.loop.hooks import GateAnswer, ToolProposal
from harness.model.messages import SessionId
from lanes.unit.assemble.place import Place, ask
from lanes.unit.surfaces.scripted import Reply, Script, ScriptedTransport, say, use


async def make(place: Place, *replies: Reply, **options: object) -> Assembled:
    place.script = Script(list(replies))
    transport = ScriptedTransport(place.script, None)
    return await assemble(place.settings(), transport=transport, **options)  # type: ignore[arg-type] # the test's own


async def test_a_session_gets_the_id_its_host_has_for_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assembled = await make(place, say("ok"), session_id=SessionId("../mine"))
    await ask(assembled, "task")
    await assembled.close()
    assert place.store().inspect(SessionId("../mine")).header.id == "../mine"
    with pytest.raises(SessionExistsError):
        await make(place, session_id=SessionId("../mine"))


async def test_options_of_the_host_are_in_every_request(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assembled = await make(place, say("ok"), options=RequestOptions(max_tokens=77, reasoning_effort="low"))
    await ask(assembled, "task")
    await assembled.close()
    (request,) = place.script.requests
    assert (request["max_completion_tokens"], request["reasoning_effort"]) == (77, "low")


async def test_only_calls_that_may_change_something_are_asked_about(tmp_path: Path) -> None:
    place = Place(tmp_path)
    asked: list[str] = []

    async def answer(proposal: ToolProposal) -> GateAnswer:
        asked.append(proposal.call.name)
        return GateAnswer("deny" if proposal.call.name == "write_file" else "allow", "not today")

    replies = [
        use("list_files", {}),
        use("write_file", {"path": "a", "content": "x"}),
        use("shell", {"command": "echo done > b"}),
        say("ok"),
    ]
    assembled = await make(place, *replies, ask=answer)
    await ask(assembled, "task")
    await assembled.close()
    assert asked == ["write_file", "shell"]
    assert sorted(path.name for path in place.work.iterdir()) == ["b"]
    assert "not today" in str(place.script.requests[2]["messages"][-1])
