"""A server in the place of the one that serves the local model, and a copy of the project that starts it.

Room: run as a program by the copies of the project in which it stands as `lanes/local_server.py`; the tests of the lane
`real-local` make those. What it is told stands in its file of weights: `dies_at` is the number of the request that it
does not live through, from 1, and `speaks_first` whether it dies in the middle of its answer or before a word of it.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lanes.tether import tie_to_parent

WEIGHTS = Path(__file__).with_name("stand-in.gguf")
MODEL = "m-stand-in"
TABLE = """
package = "weights-stand-in"
server = "server-stand-in"
file = "stand-in.gguf"
sha256 = "{digest}"
model = "m-stand-in"
context_tokens = 8192
threads = 1
ready_within_s = 60

[sampling]
seed = 1
"""


def speak(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a good small model says: the call that it has to make, else the code that it was told or has seen."""
    messages = body["messages"]
    task = next(str(each["content"]) for each in reversed(messages) if each["role"] == "user")
    choice = body["tool_choice"]
    if isinstance(choice, Mapping):
        arguments = re.search(r"\{.*?\}", task)
        function = {"name": choice["function"]["name"], "arguments": arguments[0] if arguments else "{}"}
        call = {"index": 0, "id": f"call_{len(messages)}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    seen = " ".join(str(each["content"]) for each in messages if each["role"] in {"user", "tool"})
    return {"role": "assistant", "content": f"The code is {re.findall(r'[0-9]{6}', seen)[0]}."}


def main(arguments: list[str]) -> None:
    """Do what the program in whose place it stands would do."""
    if arguments[0] == "--describe":
        os.write(1, json.dumps({"server": "server-stand-in 1.0", "weights": str(WEIGHTS)}).encode())
        return
    document = json.loads(arguments[1])
    told = json.loads(WEIGHTS.read_text("utf-8"))
    tie_to_parent(str(document["parent"]))
    numbers = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            content = json.dumps({"data": [{"id": MODEL}]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            number = next(numbers)
            message = speak(body)
            finish = "tool_calls" if message.get("tool_calls") else "stop"
            made = {"id": f"stand-in-{number}", "object": "chat.completion.chunk", "model": MODEL}
            events: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": message, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
                {"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}},
            ]
            lines = [f"data: {json.dumps(made | event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
            if number == told["dies_at"] and not told["speaks_first"]:
                os.kill(os.getpid(), signal.SIGKILL)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("content-length", str(sum(map(len, lines))))
            self.end_headers()
            self.wfile.write(lines[0])
            if number == told["dies_at"]:
                os.kill(os.getpid(), signal.SIGKILL)
            self.wfile.write(b"".join(lines[1:]))

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=document["descriptor"])
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
