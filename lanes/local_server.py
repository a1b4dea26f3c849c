"""The program that serves the local model: one child process, bound to a socket and to the life of who started it.

Room: started by `lanes.local_model` as `python -m lanes.local_server`, also by the interpreter of another environment;
nobody imports it. It alone knows the serving package.

    --describe PACKAGE SERVER    say as one line of JSON where the weights lie and which version would serve them
    --serve DOCUMENT             serve what the JSON document says, on the socket it was handed down
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lanes.record import Json
from lanes.tether import tie_to_parent


def describe(package: str, server: str) -> dict[str, Json]:
    """Say what this interpreter has: the path of the weights and the server's version, or what is missing."""
    found: dict[str, Json] = {}
    for name in (server, package):
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            return {"missing": name}
        if name == server:
            found["server"] = f"{name} {distribution.version}"
            continue
        weights = [each for each in distribution.files or () if each.name.endswith(".gguf")]
        if len(weights) != 1:
            return {"missing": f"one file of weights in {name}"}
        found["weights"] = str(distribution.locate_file(weights[0]))
    return found


def count_usage(model: type[Any]) -> None:
    """Have a class of models say at the end of each streamed answer how many tokens went in and came out.

    Shape: one chunk more, without choices, as `stream_options.include_usage` asks for; the server knows the option as
    little as the counts. What is counted is what the model itself was given and what it gave.
    Source: OpenAI API reference, "Chat completions", streaming, usage.
    """
    generate: Callable[..., Iterator[int]] = model.generate
    answer: Callable[..., Any] = model.create_chat_completion
    counts = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # it answers one request at a time

    def counted(self: object, tokens: Any, *arguments: Any, **options: Any) -> Iterator[int]:
        counts.update(prompt_tokens=len(tokens), completion_tokens=0, total_tokens=len(tokens))
        for token in generate(self, tokens, *arguments, **options):
            counts["completion_tokens"] += 1
            counts["total_tokens"] += 1
            yield token

    def with_usage(chunks: Iterator[dict[str, Json]]) -> Iterator[dict[str, Json]]:
        told: dict[str, Json] = {}
        for chunk in chunks:
            told = {name: chunk[name] for name in ("id", "object", "created", "model")}
            yield chunk
        if told:
            yield {**told, "choices": [], "usage": {**counts}}

    def answered(self: object, *arguments: Any, **options: Any) -> Any:
        found = answer(self, *arguments, **options)
        return with_usage(found) if options.get("stream") else found

    model.generate = counted
    model.create_chat_completion = answered


def serve(document: Mapping[str, Json]) -> None:
    """Serve the model until this process is ended."""
    tie_to_parent(str(document["parent"]))
    import uvicorn
    from llama_cpp import Llama
    from llama_cpp.server.app import create_app
    from llama_cpp.server.settings import ModelSettings, ServerSettings

    count_usage(Llama)
    model = ModelSettings(
        model=str(document["weights"]),
        model_alias=str(document["model"]),
        n_ctx=int(str(document["context_tokens"])),
        n_threads=int(str(document["threads"])),
        n_threads_batch=int(str(document["threads"])),
        verbose=False,
    )
    app = create_app(server_settings=ServerSettings(interrupt_requests=False), model_settings=[model])
    uvicorn.run(app, fd=int(str(document["descriptor"])), log_level="warning", access_log=False)


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    if arguments[:1] == ["--describe"] and len(arguments) == 3:
        os.write(1, json.dumps(describe(arguments[1], arguments[2])).encode())
        return
    if arguments[:1] == ["--serve"] and len(arguments) == 2:
        serve(json.loads(arguments[1]))
        return
    sys.exit("lanes.local_server is started by lanes.local_model")


if __name__ == "__main__":
    main(sys.argv[1:])
