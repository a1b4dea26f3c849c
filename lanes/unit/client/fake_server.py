"""A server that says what its scenario says; for what no well-behaved server does.

Room: run as a program by the tests of the client. The scenario is JSON in FAKE_SERVER:
  hello          result of initialize, or {"refuse": text}
  prompts        for each prompt in turn, a list of: {"notify": [method, params]}, {"answer": result}, {"raw": line},
                 {"stderr": text}, {"exit": status}, {"deaf": true} (it reads nothing from then on),
                 {"wait": "prompt"} (for the next prompt), {"ask": method}
  silent         methods that are never answered
  ignore_eof, ignore_term, ignore_shutdown
The text MESSAGE in params stands for the id of the prompt's message, MESSAGE-1 for the first prompt's.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

SCENARIO: dict[str, Any] = json.loads(os.environ["FAKE_SERVER"])


def write(frame: Any) -> None:
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def filled(value: Any, number: int) -> Any:
    text = json.dumps(value)
    return json.loads(text.replace('"MESSAGE"', f'"m-{number}"').replace("MESSAGE-", "m-"))


def play(steps: list[Any], number: int, identity: Any) -> None:
    for step in steps:
        ((kind, value),) = step.items()
        if kind == "notify":
            write({"jsonrpc": "2.0", "method": value[0], "params": filled(value[1], number)})
        elif kind == "answer":
            write({"jsonrpc": "2.0", "id": identity, "result": filled(value, number)})
        elif kind == "raw":
            sys.stdout.write(value)
            sys.stdout.flush()
        elif kind == "stderr":
            sys.stderr.write(value)
            sys.stderr.flush()
        elif kind == "ask":
            write({"jsonrpc": "2.0", "id": "server-1", "method": value, "params": {}})
        elif kind == "deaf":
            os.close(0)
        elif kind == "exit":
            os._exit(value)


def main() -> None:
    if SCENARIO.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if SCENARIO.get("stderr"):
        sys.stderr.write(SCENARIO["stderr"])
        sys.stderr.flush()
    prompts = iter(SCENARIO.get("prompts", []))
    seen: list[str] = []
    number = 0
    for line in sys.stdin:
        frame = json.loads(line)
        seen.append(line)
        method, identity = frame.get("method"), frame.get("id")
        if method in SCENARIO.get("silent", []):
            continue
        if method == "initialize":
            hello = SCENARIO.get("hello", {"serverInfo": {"name": "fake", "version": "0"}})
            if "refuse" in hello:
                write({"jsonrpc": "2.0", "id": identity, "error": {"code": -32603, "message": hello["refuse"]}})
            else:
                write({"jsonrpc": "2.0", "id": identity, "result": {**hello, "params": frame.get("params")}})
        elif method == "session/prompt":
            number += 1
            steps = next(prompts)
            play(steps, number, identity)
            if {"deaf": True} in steps:
                threading.Event().wait()
        elif method == "lines":
            write({"jsonrpc": "2.0", "id": identity, "result": {"lines": seen}})
        elif method == "shutdown" and not SCENARIO.get("ignore_shutdown"):
            write({"jsonrpc": "2.0", "id": identity, "result": {}})
            if not SCENARIO.get("ignore_eof"):
                sys.exit(0)
        elif method is not None and identity is not None and "answer_all" in SCENARIO:
            write({"jsonrpc": "2.0", "id": identity, "result": SCENARIO["answer_all"]})
    if SCENARIO.get("ignore_eof"):
        threading.Event().wait()


main()
