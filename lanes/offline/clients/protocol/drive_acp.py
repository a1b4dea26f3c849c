"""The published Python client of the Agent Client Protocol on its journeys.

Room: run as a program by the tests of published clients, with the path of a task; says what it saw as JSON. It knows
nothing of this project: what it imports are the published package and the standard library.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, Client, RequestError, image_block, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

TASK: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))


class Editor(Client):
    """What an editor keeps: the words of each session, and how it answers questions of permission."""

    def __init__(self) -> None:
        self.words: dict[str, list[str]] = {}
        self.came = asyncio.Event()
        self.answers: list[str] = []
        self.asked: list[str] = []
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        if update.session_update == "agent_message_chunk" and update.content.type == "text":
            self.words.setdefault(session_id, []).append(update.content.text)
            self.came.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> RequestPermissionResponse:
        self.asked.append(f"{tool_call.title}: {' '.join(option.kind for option in options)}")
        self.is_asked.set()
        await self.may_answer.wait()
        wanted = self.answers.pop(0)
        if wanted == "cancelled":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        (option,) = [option.option_id for option in options if option.kind == wanted]
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))


class Line:
    """A connection that shook hands."""

    def __init__(self, connection: Any, editor: Editor, hello: Any) -> None:
        self.connection = connection
        self.editor = editor
        self.hello = hello

    async def new(self) -> str:
        made = await self.connection.new_session(cwd=TASK["workspace"], mcp_servers=[])
        return str(made.session_id)

    async def say(self, session: str, *blocks: Any) -> str:
        answer = await self.connection.prompt(prompt=list(blocks), session_id=session)
        return str(answer.stop_reason)

    def said(self, session: str) -> str:
        return "".join(self.editor.words.get(session, []))


async def initialize(line: Line) -> dict[str, Any]:
    capabilities = line.hello.agent_capabilities
    return {
        "version": line.hello.protocol_version,
        "agent": line.hello.agent_info.name,
        "image": capabilities.prompt_capabilities.image,
        "audio": capabilities.prompt_capabilities.audio,
        "load": bool(capabilities.load_session),
    }


async def new(line: Line) -> dict[str, Any]:
    sessions = [await line.new(), await line.new()]
    try:
        await line.connection.new_session(cwd="relative", mcp_servers=[])
    except RequestError as error:
        return {"are_two": len(set(sessions)) == 2, "refused": error.code}
    return {}


async def prompt(line: Line) -> dict[str, Any]:
    session = await line.new()
    first = await line.say(session, text_block("Say hello."))
    second = await line.say(session, text_block("Again."))
    return {"stops": [first, second], "words": line.said(session)}


async def picture(line: Line) -> dict[str, Any]:
    session = await line.new()
    stop = await line.say(session, text_block("What is this?"), image_block(TASK["picture"], "image/png"))
    return {"stop": stop, "words": line.said(session)}


async def cancel(line: Line) -> dict[str, Any]:
    session = await line.new()
    running = asyncio.ensure_future(line.say(session, text_block("Work.")))
    await line.editor.came.wait()
    await line.connection.cancel(session_id=session)
    stop = await running
    words = line.said(session)
    after = await line.say(session, text_block("Still there?"))
    return {"stop": stop, "words": words, "after": after, "later": line.said(session)[len(words) :]}


async def permission(line: Line) -> dict[str, Any]:
    session = await line.new()
    line.editor.answers = ["allow_once", "reject_once", "cancelled"]
    stops = [await line.say(session, text_block(f"Write {name}.")) for name in ("one", "two", "three")]
    return {"stops": stops, "asked": line.editor.asked}


async def withdrawn(line: Line) -> dict[str, Any]:
    """The prompt ends while the question is open; the answer comes late, and is an allowance."""
    session = await line.new()
    line.editor.answers = ["allow_once"]
    line.editor.may_answer.clear()
    running = asyncio.ensure_future(line.say(session, text_block("Write one.")))
    await line.editor.is_asked.wait()
    await line.connection.cancel(session_id=session)
    stop = await running
    line.editor.may_answer.set()
    after = await line.say(session, text_block("Still there?"))
    return {"stop": stop, "asked": line.editor.asked, "after": after, "later": line.said(session)}


async def two(line: Line) -> dict[str, Any]:
    left, right = await line.new(), await line.new()
    working = asyncio.ensure_future(line.say(left, text_block("Work.")))
    await line.editor.came.wait()
    stop = await line.say(right, text_block("Speak beside."))
    await line.connection.cancel(session_id=left)
    return {"right": [stop, line.said(right)], "left": [await working, line.said(left)]}


JOURNEYS = {
    "initialize": initialize,
    "new": new,
    "prompt": prompt,
    "image prompt": picture,
    "cancel": cancel,
    "permission": permission,
    "permission withdrawn": withdrawn,
    "two sessions at once": two,
}


async def main() -> None:
    """Go the journey of the task and say what was seen."""
    editor = Editor()
    command = [TASK["program"], "acp", "--provider", TASK["provider"], "--model", TASK["model"], *TASK["flags"]]
    kept = {"shutdown_timeout": 20.0}
    async with spawn_agent_process(editor, *command, env=os.environ, transport_kwargs=kept) as (connection, _):
        hello = await connection.initialize(protocol_version=PROTOCOL_VERSION)
        said = await JOURNEYS[TASK["journey"]](Line(connection, editor, hello))
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main())
