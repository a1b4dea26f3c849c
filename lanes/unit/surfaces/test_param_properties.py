"""Any params for any method are served, or refused in words of ours: never with a stranger's error or a hang."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.client.runs import RunCollector, Told
from harness.errors import PeerError
from lanes.unit.surfaces.acp_bench import AcpBench
from lanes.unit.surfaces.scripted import say
from lanes.unit.surfaces.sdk_bench import SdkBench

OURS = {-32601, -32602, -32603}
_KEYS = [
    "sessionId", "messageId", "contentBlocks", "cwd", "path", "provider", "model", "maxTokens", "reasoningEffort",
    "prompt", "mcpServers", "additionalDirectories", "protocolVersion", "clientCapabilities", "type", "text", "data",
    "mimeType", "uri", "name", "attachment", "id", "requestId", "methodId",
]  # fmt: skip
_TEXTS = st.text(max_size=6) | st.sampled_from(
    ["s", "nobody", ".", "/", "..", "image", "text", "\0", "\ud800", "a" * 300]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS) | _TEXTS, inner, max_size=4),
    max_leaves=8,
)
_BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image", "reasoning", "resource_link", "audio", "resource"]) | _VALUES},
        optional=dict.fromkeys(("text", "data", "mimeType", "uri", "name", "attachment"), _VALUES),
    )
    | _VALUES,
    max_size=3,
)
_PARAMS = st.fixed_dictionaries(
    {"sessionId": st.sampled_from(["s", "s", "nobody"]) | _VALUES},
    optional={
        "contentBlocks": _BLOCKS | _VALUES,
        "prompt": _BLOCKS | _VALUES,
        "messageId": _VALUES,
        "cwd": st.just("/") | _VALUES,
        "path": st.just(".") | _VALUES,
        "mcpServers": st.just([]) | _VALUES,
        **dict.fromkeys(("provider", "model", "maxTokens", "reasoningEffort", "additionalDirectories"), _VALUES),
    },
) | st.dictionaries(st.sampled_from(_KEYS), _VALUES, max_size=3)
_SDK = (
    "initialize", "session/prompt", "session/cancel", "session/resume", "session/list", "session/close",
    "session/working-directory/get", "session/working-directory/set",
)  # fmt: skip
_ACP = (
    "initialize", "authenticate", "session/new", "session/prompt", "session/list", "session/load", "session/resume",
    "session/close",
)  # fmt: skip
_SLOW = [HealthCheck.too_slow]


def problems(answer: Any, said: list[str]) -> list[str]:
    """What an answer must not be: an error that is none of ours, or one that hides what nobody foresaw."""
    code, message = (answer.get("code"), str(answer.get("message"))) if "code" in answer else (None, "")
    found = [] if code is None or code in OURS else [f"code {code}"]
    found += [message] if "[INTERNAL" in message else []
    return found + [line for line in said if "Error:" in line]


@pytest.mark.parametrize("method", _SDK)
@settings(deadline=None, max_examples=40, suppress_health_check=_SLOW)
@given(asked=st.lists(_PARAMS, min_size=1, max_size=3))
def test_any_params_to_the_sdk_server_are_answered_in_words_of_ours(method: str, asked: list[dict[str, Any]]) -> None:
    async def run(folder: Path) -> list[str]:
        bench = SdkBench(folder, *(say("ok") for _ in range(20)))
        await bench.hello()
        found = [line for params in asked for line in problems(await bench.ask(method, params), bench.said)]
        assert await bench.leave() == 0
        return found

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(run(Path(folder))) == []


@pytest.mark.parametrize("method", _ACP)
@settings(deadline=None, max_examples=40, suppress_health_check=_SLOW)
@given(asked=st.lists(_PARAMS, min_size=1, max_size=3), told=_PARAMS)
def test_any_params_to_the_acp_server_are_answered_in_words_of_ours(
    method: str, asked: list[dict[str, Any]], told: dict[str, Any]
) -> None:
    async def run(folder: Path) -> list[str]:
        bench = AcpBench(folder, *(say("ok") for _ in range(20)), stored=True)
        session = await bench.ready()
        for name in ("session/cancel", "$/cancel_request"):
            bench.tell(name, **told)
        found = []
        for params in asked:
            own = {**params, "sessionId": session} if params.get("sessionId") == "s" else params
            found += problems(await bench.ask(method, **own), bench.said)
        assert await bench.leave() == 0
        return found

    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(run(Path(folder))) == []


@settings(deadline=None, max_examples=200)
@given(
    told=st.lists(
        st.tuples(
            st.sampled_from(["session.event", "session.status", "subagent.started"]),
            st.fixed_dictionaries(
                {"sessionId": st.just("s") | _VALUES},
                optional={
                    "status": st.just("idle") | _VALUES,
                    "event": _VALUES
                    | st.fixed_dictionaries(
                        {
                            "type": st.sampled_from(["agent/inbox/spliced", "turn/end", "assistant/message"]),
                            "data": _VALUES
                            | st.fixed_dictionaries({"inserted": _VALUES, "reason": _VALUES, "message": _VALUES}),
                        }
                    ),
                },
            ),
        ),
        max_size=6,
    )
)
def test_whatever_a_client_is_told_is_taken_or_a_protocol_error(told: list[tuple[str, dict[str, Any]]]) -> None:
    collector = RunCollector("s", "m", None)
    collector.take(
        Told(
            "session.event",
            {"sessionId": "s", "event": {"type": "agent/inbox/spliced", "data": {"inserted": [{"id": "m"}]}}},
        )
    )
    for method, params in told:
        try:
            collector.take(Told(method, params))
        except PeerError:
            continue
    assert collector.result().session_id == "s"


@pytest.mark.parametrize("method", ["session/cancel", "$/cancel_request"])
async def test_a_notification_without_params_is_passed_over(method: str, tmp_path: Path) -> None:
    bench = AcpBench(tmp_path, say("ok"))
    session = await bench.ready()
    bench.source.frame(method=method)
    assert (await bench.say(session, "a"))["stopReason"] == "end_turn"
    assert (await bench.leave(), bench.said) == (0, [])
