"""The sealed way to the model on this machine: the one port that was started for it, and who stands behind it.

Room: `lanes.channels` opens it in the environment `real-local`, the recorder while it records. What takes the place of
host and TLS in its proof comes from who started the server, and never from a test.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping

import httpx

from lanes.local_model import RunningModel
from lanes.local_table import LOCAL_NAME
from lanes.providers import Provider
from lanes.record import Json, JsonObject
from lanes.sealed import SealedTransport
from lanes.trouble import Trouble


def local_provider(running: RunningModel) -> Provider:
    """The model on this machine as a provider of its own."""
    return Provider(
        name=LOCAL_NAME,
        base_url=running.base_url,
        path_prefix="/v1/",
        dialect="openai_chat",
        key="",
        model=running.model,
        id_pattern="",
        sends_date=False,
        peers="private",
    )


class LocalTransport(SealedTransport):
    """An httpx transport to the model server that was started for this run, and what came over its wire.

    Shape: tell and inner are those of the sealed transport.
    Raises: GuardError, before a byte is sent, for a request to any other port or host.
    """

    def __init__(
        self,
        running: RunningModel,
        *,
        tell: Callable[[Trouble | None], None] | None = None,
        inner: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(local_provider(running), tell=tell, inner=inner)
        self._running = running

    @property
    def running(self) -> RunningModel:
        """The model that answers."""
        return self._running

    @property
    def says_challenge(self) -> bool:
        """Whether the model's words carried this run's token."""
        nonce = super().proof_facts()["nonce"]
        return isinstance(nonce, Mapping) and nonce["verified"] is True

    def new_challenge(self) -> str:
        """Make this run's token: a number, which so small a model can say after; a million of them is enough here."""
        self._challenge = str(100_000 + secrets.randbelow(900_000))
        return self._challenge

    def proof_facts(self) -> JsonObject:
        """The facts of the whole conversation, with those of the server in the place of host and TLS."""
        facts: dict[str, Json] = {**super().proof_facts(), "local": self._running.facts()}
        return facts
