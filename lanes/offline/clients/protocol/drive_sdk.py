"""The published Python client of the SDK wire on its journeys, in both its generations.

Room: run as a program by the tests of published clients, with the path of a task; says what it saw as JSON. It knows
nothing of this project: what it imports are the published package and the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from deepseek_harness import DeepSeekHarness

TASK: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
GRACE_S = 10.0  # machines under test are slower than the second that the client gives by itself


def opened(**more: Any) -> DeepSeekHarness:
    """A client as its own generation launches a server, on its own default provider and model."""
    given = {"cwd": TASK["workspace"], "base_url": TASK["baseUrl"], "api_key": TASK["apiKey"], "max_tokens": 4096}
    given |= {"request_timeout_seconds": 60.0, "shutdown_timeout_seconds": GRACE_S, **more}
    if TASK["client"].endswith("rc7"):
        command = (TASK["program"], "sdk", *TASK["flags"])
        return DeepSeekHarness(launch_args_override=command, session_root=TASK["sessions"], **given)
    patch = Path(TASK["folder"]) / "patch.yml"
    patch.write_text("{}\n", "utf-8")
    home = str(Path(TASK["sessions"]).parent)
    return DeepSeekHarness(dsh_bin=TASK["program"], patches=(str(patch),), dsh_home=home, **given)


def reason(events: list[Any]) -> str | None:
    """How the last turn ended."""
    kinds = [event["data"]["reason"]["kind"] for event in events if event["type"] == "turn/end"]
    return kinds[-1] if kinds else None


def text(event: Any) -> str:
    """The words of a message."""
    return "".join(block["text"] for block in event["data"]["message"]["content"] if block["type"] == "text")


def told(result: Any) -> dict[str, Any]:
    """What a run says of itself."""
    kinds = [event["type"] for event in result.events if event["type"] != "assistant/chunk"]
    return {"answer": result.final_response, "reason": result.finish_reason, "kinds": kinds}


def hello() -> dict[str, Any]:
    seen: list[str] = []
    with opened() as client:
        result = client.run("Say hello.", session_id="s", on_notification=lambda one: seen.append(one.method))
    return {**told(result), "methods": sorted(set(seen))}


def tools() -> dict[str, Any]:
    with opened() as client:
        return told(client.run("Write the note.", session_id="s"))


def several() -> dict[str, Any]:
    with opened() as client, ThreadPoolExecutor() as pool:
        beside = pool.submit(client.run, "Speak beside.", session_id="beside")
        with client.client.subscribe_session_notifications("line") as heard:
            blocks = [[{"type": "text", "text": f"Number {number}."}] for number in (1, 2, 3)]
            receipts = [client.client.session_prompt("line", block) for block in blocks]
            events: list[Any] = []
            while [event["type"] for event in events].count("turn/end") < 3:
                one = heard.next()
                if one.method == "session.event" and one.payload["sessionId"] == "line":
                    events.append(one.payload["event"])
        answers = [text(event) for event in events if event["type"] == "assistant/message"]
        spliced = [one["id"] for event in events for one in inserted(event)]
        return {"answers": answers, "are_receipts": spliced == receipts, "beside": beside.result().final_response}


def inserted(event: Any) -> list[Any]:
    return event["data"].get("inserted") or [] if event["type"] == "agent/inbox/spliced" else []


def resume() -> dict[str, Any]:
    with opened() as client:
        first = client.run("Remember the word.", session_id="s")
    with opened() as client:
        if hasattr(client, "resume_session"):
            client.resume_session("s")
        second = client.run("What was the word?", session_id="s")
    return {**told(second), "goes_on": second.events[0]["seq"] > first.events[-1]["seq"]}


def death() -> dict[str, Any]:
    def kill(one: Any) -> None:
        if one.method == "session.event" and one.payload["event"]["type"] == "assistant/chunk":
            with contextlib.suppress(ProcessLookupError):  # a second chunk that was on its way finds it dead
                os.kill(server(), signal.SIGKILL)

    client = opened()
    failed = ""
    try:
        client.run("Begin.", session_id="s", on_notification=kill)
    except Exception as error:  # noqa: BLE001 - which one it is is what is asked
        failed = type(error).__name__
    client.close()
    with opened() as another:
        result = another.run("Go on.", session_id="s")
    return {"failed": failed, "answer": result.final_response, "reason": result.finish_reason}


def server() -> int:
    """The process of the newest server."""
    newest = max(Path(TASK["folder"]).glob("server-*.pid"))
    return int(newest.read_text("utf-8"))


def shutdown() -> dict[str, Any]:
    began, events, statuses = threading.Event(), list[Any](), list[str]()
    client = opened()
    client.start()
    heard = client.client.subscribe_session_notifications("s")

    def listen() -> None:
        try:
            while True:
                one = heard.next()
                if one.method == "session.event":
                    events.append(one.payload["event"])
                    if one.payload["event"]["type"] == "assistant/chunk":
                        began.set()
                elif one.method == "session.status":
                    statuses.append(one.payload["status"])
        except Exception:  # noqa: BLE001 - the client raises when its server is gone
            return

    listener = threading.Thread(target=listen)
    listener.start()
    client.client.session_prompt("s", [{"type": "text", "text": "Begin."}])
    began.wait(GRACE_S)
    client.close()
    listener.join(GRACE_S)
    return {"reason": reason(events), "statuses": statuses}


JOURNEYS = {
    "hello": hello,
    "tools": tools,
    "several prompts at once": several,
    "resume": resume,
    "death of the process": death,
    "shutdown in a turn": shutdown,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(JOURNEYS[TASK["journey"]]()))
