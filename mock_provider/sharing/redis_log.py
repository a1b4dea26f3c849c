"""The order of events in a Redis server.

Room: the network; workers and their supervisor come in. Needs the extra `redis`.
What every worker has read is thrown away, so that the server holds no more than they are behind.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, cast

from mock_provider.errors import UsageError
from mock_provider.sharing.log import LinkLostError

PREFIX = "mock-provider"
PLAYS = f"{PREFIX}:plays"
TIMEOUT_S = 5.0  # a server on the same machine answers in a thousandth of it
KEPT_S = 3600  # how long the keys stay when nobody is left to delete them
TRIM_AT = 256  # events that all have read before they are thrown away

# Keys: the list of events, the number of events thrown away, and how far each worker has read.
_APPEND = """
local gone = tonumber(redis.call('GET', KEYS[2]) or '0')
local at = tonumber(ARGV[1]) - gone
if redis.call('LLEN', KEYS[1]) == at then
  redis.call('RPUSH', KEYS[1], ARGV[2])
  return {}
end
return redis.call('LRANGE', KEYS[1], at, -1)
"""
_READ = """
local gone = tonumber(redis.call('GET', KEYS[2]) or '0')
redis.call('HSET', KEYS[3], ARGV[2], ARGV[1])
local least = tonumber(ARGV[1])
for _, place in ipairs(redis.call('HVALS', KEYS[3])) do
  least = math.min(least, tonumber(place))
end
local found = redis.call('LRANGE', KEYS[1], tonumber(ARGV[1]) - gone, -1)
if least - gone >= tonumber(ARGV[3]) then
  redis.call('LTRIM', KEYS[1], least - gone, -1)
  redis.call('SET', KEYS[2], least)
end
for _, key in ipairs(KEYS) do
  redis.call('EXPIRE', key, ARGV[4])
end
return found
"""


class _Client(Protocol):
    def ping(self) -> object: ...
    def incr(self, name: str) -> int: ...
    def delete(self, *names: str) -> object: ...
    def hset(self, name: str, key: str, value: int) -> object: ...
    def register_script(self, script: str) -> Callable[..., Sequence[bytes]]: ...
    def close(self) -> None: ...


class RedisLog:
    """The events of one play in one Redis server. Shape: worker tells those who read apart; each has to join first."""

    def __init__(self, client: _Client, play: int, worker: str) -> None:
        self._client = client
        self._worker = worker
        self._keys = [f"{PREFIX}:{play}:{name}" for name in ("events", "gone", "places")]
        self._append = client.register_script(_APPEND)
        self._read = client.register_script(_READ)
        self._lost = _errors()

    def join(self) -> None:
        """Take part: from now on nothing is thrown away that was not read here."""
        with self._watched():
            self._client.hset(self._keys[2], self._worker, 0)

    def append(self, at: int, event: bytes) -> Sequence[bytes]:
        """Append, or give what came first."""
        with self._watched():
            return self._append(keys=self._keys[:2], args=[at, event])

    def read(self, at: int) -> Sequence[bytes]:
        """What came since."""
        with self._watched():
            return self._read(keys=self._keys, args=[at, self._worker, TRIM_AT, KEPT_S])

    def delete(self) -> None:
        """Forget the play."""
        with self._watched():
            self._client.delete(*self._keys)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except self._lost as error:
            raise LinkLostError(str(error)) from None


def _errors() -> tuple[type[Exception], ...]:
    error: type[Exception] = importlib.import_module("redis").RedisError
    return (error, OSError)


def open_log(url: str, worker: str, play: int | None = None) -> tuple[RedisLog, int]:
    """Connect. Shape: the log and the number of the play, a new one unless it is given.

    Raises: UsageError when that cannot be done.
    """
    if not importlib.util.find_spec("redis"):
        what = "the package redis is not installed"
        raise UsageError(what, where="--redis", fix="pip install 'five-lanes[redis]'")
    module = importlib.import_module("redis")
    failures: tuple[type[Exception], ...] = (*_errors(), ValueError)
    try:
        never = importlib.import_module("redis.retry").Retry(importlib.import_module("redis.backoff").NoBackoff(), 0)
        options = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S, "retry": never}
        client = cast("_Client", module.Redis.from_url(url, **options))  # a second try could append a second time
        client.ping()
        number = client.incr(PLAYS) if play is None else play
    except failures as error:
        what = f"no Redis server answers there: {error}"
        raise UsageError(what, where=f"--redis {_without_password(url)}", expected="redis://HOST:PORT/DB") from None
    log = RedisLog(client, number, worker)
    log.join()
    return log, number


def _without_password(url: str) -> str:
    scheme, sign, rest = url.partition("://")
    return f"{scheme}{sign}{rest.rpartition('@')[2]}"
