"""The recorder as a careless client would use it: `python careless_recording.py ARGUMENTS`, the plants on stdin.

Room: started by test_planted_secrets alone. Every request carries secrets in its address, its headers and its body, the
story has one in its task and one in a file, and nothing that is written is taken away again, temporary folders least of
all. The plants come as JSON on stdin: `known`, `shaped`, and `fails` for a story whose end is not as it should be.
"""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from dataclasses import replace
from typing import Any

import httpx

from lanes import recorder
from lanes.cli import main
from lanes.scenario import Scenario, find_scenario
from lanes.world import FileCheck


class Careless(httpx.AsyncBaseTransport):
    """Adds the plants to each request."""

    def __init__(self, inner: httpx.AsyncBaseTransport, known: str, shaped: str) -> None:
        self._inner = inner
        self._known = known
        self._shaped = shaped

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(await request.aread())
        body |= {"user": self._known, "metadata": {"note": f"use {self._shaped}", "token": f"t-{self._shaped}"}}
        headers = {**request.headers, "x-api-key": self._known, "cookie": f"sid={self._shaped}"}
        del headers["content-length"]
        url = request.url.copy_merge_params({"key": self._known, "note": self._shaped})
        extensions = dict(request.extensions)
        return await self._inner.handle_async_request(
            httpx.Request("POST", url, headers=headers, json=body, extensions=extensions)
        )


def planted_story(name: str, *, known: str, shaped: str, fails: bool) -> Scenario:
    """A small story with a secret in its file and in its task."""
    story = find_scenario(name)
    wrong = (FileCheck("code.txt", equals="something else\n"),)
    return replace(
        story,
        workspace={"code.txt": f"The code is {known}.\n"},
        runs=tuple(replace(run, task=f"{run.task} My key is {shaped}.") for run in story.runs),
        world=wrong if fails else (),
    )


def run(arguments: list[str], plants: dict[str, Any]) -> int:
    """Record with all of it planted."""
    tempfile.TemporaryDirectory.cleanup = lambda folder: None
    tempfile.TemporaryDirectory._cleanup = classmethod(lambda *_arguments, **_options: None)
    known, shaped = str(plants["known"]), str(plants["shaped"])
    recorder.find_scenario = functools.partial(planted_story, **plants)
    recorder.record_cassette = functools.partial(
        recorder.record_cassette, around=lambda way: Careless(way, known, shaped)
    )
    return main(arguments)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], json.load(sys.stdin)))
