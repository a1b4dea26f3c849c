"""A stdio MCP server made of the standard library alone, which misbehaves in the way its first argument names.

Room: the tests of MCP start it as a program.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WAY = sys.argv[1]
NOTES = Path(sys.argv[2]) if len(sys.argv) > 2 else None
OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}


def note(text: str) -> None:
    if NOTES is not None:
        with NOTES.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request: dict[str, Any], result: dict[str, Any]) -> None:
    send({"id": request["id"], "result": result})


def tools() -> list[dict[str, Any]]:
    if WAY == "bad-schemas":
        return [
            {"name": "fine", "inputSchema": OBJECT},
            {"name": "twice", "inputSchema": OBJECT},
            {"name": "twice", "inputSchema": OBJECT},
            {"name": "no type", "inputSchema": {"type": "object", "properties": {"a": {"type": "sting"}}}},
            {"name": "too large", "inputSchema": {"type": "object", "description": "x" * 70_000}},
        ]
    if WAY == "no-schema":
        return [{"name": "fine", "inputSchema": OBJECT}, {"name": "broken"}]
    if WAY == "hints":
        hints: dict[str, Any] = {"true": True, "text": "true", "one": 1, "false": False}
        listed = [{"name": name, "inputSchema": OBJECT, "annotations": {"readOnlyHint": hints[name]}} for name in hints]
        return [*listed, {"name": "none", "inputSchema": OBJECT}]
    told = os.environ.get("TOKEN", "")
    return [{"name": "echo", "description": f"Give the text back.{told}", "inputSchema": OBJECT}]


def listed(request: dict[str, Any]) -> dict[str, Any]:
    if WAY == "endless-list":
        at = int((request.get("params") or {}).get("cursor") or 0)
        return {"tools": [{"name": f"tool-{at}", "inputSchema": OBJECT}], "nextCursor": str(at + 1)}
    return {"tools": tools()}


def call(request: dict[str, Any]) -> None:
    text = request["params"].get("arguments", {}).get("text", "")
    note(f"call {text}")
    match WAY:
        case "dies-in-call":
            sys.stderr.write("out of luck\n")
            sys.stderr.flush()
            os._exit(7)
        case "killed-in-call":
            os.kill(os.getpid(), signal.SIGKILL)
        case "closes-output":
            os.close(1)
            time.sleep(60)
        case "never-answers":
            return
        case "garbage":
            write(b"this is no JSON\n\xff\xfe\x00\n{}\n[1]\n")
            send({"id": request["id"], "result": "no object"})
        case "wrong-result":
            answer(request, {"content": "no list"})
        case "long-line":
            write(b'{"jsonrpc":"2.0","id":%d,"result":{"x":"' % request["id"] + b"x" * (33 << 20) + b'"}}\n')
        case "half-character":
            write(
                b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\\ud800b"}]}}\n' % request["id"]
            )
        case "error":
            send({"id": request["id"], "error": {"code": -32602, "message": "no such\ntool"}})
        case "tells-its-secret":
            sent = {"code": -32602, "message": "x" * 390 + " bad token " + os.environ["TOKEN"]}
            send({"id": request["id"], "error": sent})
        case "changes-list":
            send({"method": "notifications/tools/list_changed"})
            send({"id": request["id"], "error": {"code": -32602, "message": "unknown tool"}})
        case "asks-back":
            send({"id": "s1", "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}})
            reply = json.loads(sys.stdin.readline())
            answer(request, {"content": [{"type": "text", "text": reply["error"]["message"]}]})
        case _:
            answer(request, {"content": [{"type": "text", "text": f"echo: {text}"}]})


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                if WAY == "hangs-at-initialize":
                    continue
                result = {
                    "protocolVersion": "1999-01-01" if WAY == "old" else request["params"]["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
                answer(request, result)
            case "tools/list":
                answer(request, listed(request))
            case "tools/call":
                call(request)
            case "notifications/cancelled":
                note("cancelled")
            case _ if "id" in request and WAY != "ignores-unknown":
                send({"id": request["id"], "error": {"code": -32601, "message": "unknown method"}})


match WAY:
    case "dies-at-start":
        sys.stderr.write("first line\nno such database\n\n")
        sys.exit(3)
    case "noise":
        write(b"Welcome!\n\xff\xfe\n\n")
        sys.stderr.write("warming up\n" * 1000)
    case "silent":
        sys.stdout.write("Loading the model...\n")
        sys.stdout.flush()
        time.sleep(60)
    case "ignores-end":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    case "child" | "child-then-dies":
        child = subprocess.Popen(["sleep", "600"], start_new_session=WAY == "child")
        note(f"child {child.pid}")
note(f"pid {os.getpid()}")
note("environment " + " ".join(sorted(os.environ)))
note(f"folder {Path.cwd()}")
serve()
if WAY == "ignores-end":
    time.sleep(600)
