"""Results of token checks kept for a moment, by hash: a busy client's token is not checked a thousand times a second.

Upstream: k8s.io/apiserver/pkg/authentication/token/cache. Successes are kept, for 10 s, and plain refusals where that is asked for;
errors never. Concurrent checks of one token share one answer. Tokens themselves are never kept, only a keyed hash that is useless
outside this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tetrapod.generic.authentication.interface import Authenticated, TokenAuthenticator
from tetrapod.generic.metrics import Counter

K = TypeVar("K")
V = TypeVar("V")

SUCCESS_SECONDS: Final = 10.0
_LIMIT: Final = 8192
REQUESTS: Final = Counter("authentication_token_cache_request_total", "", ("status",))
FETCHES: Final = Counter("authentication_token_cache_fetch_total", "", ("status",))


class ExpiringCache(Generic[K, V]):
    """A bounded dictionary whose entries vanish after `seconds`; 0 keeps nothing."""

    def __init__(self, seconds: float, *, limit: int = _LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        self._entries: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            del self._entries[key]
            return None
        return entry[1]

    def put(self, key: K, value: V) -> None:
        if self._seconds <= 0:
            return
        if len(self._entries) >= self._limit:
            self._evict()
        self._entries[key] = (self._clock() + self._seconds, value)

    def _evict(self) -> None:
        now = self._clock()
        self._entries = {k: e for k, e in self._entries.items() if e[0] > now}
        while len(self._entries) >= self._limit:  # all alive: the oldest goes
            del self._entries[next(iter(self._entries))]


class CachedTokenAuthenticator:
    """Remembers what another token authenticator found; for `failure_seconds`, too, that it found nobody."""

    def __init__(self, inner: TokenAuthenticator, seconds: float = SUCCESS_SECONDS, *, failure_seconds: float = 0) -> None:
        self._inner = inner
        self._found = ExpiringCache[bytes, Authenticated](seconds)
        self._refused = ExpiringCache[bytes, bool](failure_seconds)
        self._asking: dict[bytes, asyncio.Task[Authenticated | None]] = {}
        self._salt = secrets.token_bytes(32)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        key = self._key(token, audiences)
        found = self._found.get(key)
        if found is not None or self._refused.get(key):
            REQUESTS.add(("hit",))
            return found
        REQUESTS.add(("miss",))
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, token, audiences))
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)  # one caller's cancellation is not the others'

    async def _ask(self, key: bytes, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        fetched = "error"
        try:
            result = await self._inner.authenticate_token(token, audiences)
            fetched = "ok"
        finally:
            FETCHES.add((fetched,))
        if result is not None:
            self._found.put(key, result)
        else:
            self._refused.put(key, True)
        return result

    def _asked(self, key: bytes, task: asyncio.Task[Authenticated | None]) -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen by whoever still waits; nobody may

    def _key(self, token: str, audiences: tuple[str, ...]) -> bytes:
        digest = hashlib.blake2b(key=self._salt, digest_size=32)
        for part in (token, *audiences):
            encoded = part.encode("utf-8", "surrogateescape")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.digest()
