"""Embed the agent in a Python program: start `harness sdk`, prompt sessions, follow what they do.

    async with HarnessClient(Launch(cwd=".", provider="openai", model="gpt-4.1-mini")) as client:
        result = await client.run("fix the failing test", session_id="fix-1", timeout_s=600)
        print(result.final_response)

A request or a run that times out stays running on the server: its turn finishes and lands in the session's log.
"""

from harness.client.blocking import BlockingHarnessClient
from harness.client.client import HarnessClient, Launch, Subscription, clean_environment
from harness.client.errors import (
    ClientClosedError,
    ClientError,
    ProtocolError,
    RequestTimeoutError,
    RunTimeoutError,
    ServerDiedError,
    StartError,
    StillRunningError,
)
from harness.client.process import Grace
from harness.client.runs import RunResult, Told

__all__ = [
    "BlockingHarnessClient",
    "ClientClosedError",
    "ClientError",
    "Grace",
    "HarnessClient",
    "Launch",
    "ProtocolError",
    "RequestTimeoutError",
    "RunResult",
    "RunTimeoutError",
    "ServerDiedError",
    "StartError",
    "StillRunningError",
    "Subscription",
    "Told",
    "clean_environment",
]
