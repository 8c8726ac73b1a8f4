"""Results of token checks kept for a moment, by hash: a busy client's token is not checked a thousand times a second.

Upstream: k8s.io/apiserver/pkg/authentication/token/cache. Successes are kept, for 10 s, and plain refusals where that is asked for;
errors never. Concurrent checks of one token share one answer. Tokens themselves are never kept, only a keyed hash that is useless
outside this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from tetrapod.generic.authentication.interface import Authenticated, TokenAuthenticator
from tetrapod.generic.metrics import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from tetrapod.generic.authentication.sharedtokens import SharedTokens

K = TypeVar("K")
V = TypeVar("V")

SUCCESS_SECONDS: Final = 10.0
_LIMIT: Final = 8192
REQUESTS: Final = Counter("authentication_token_cache_request_total", "", ("status",))
FETCHES: Final = Counter("authentication_token_cache_fetch_total", "", ("status",))
_SECONDS: Final = Histogram(
    "authentication_token_cache_request_duration_seconds", "", ("status",), (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
)
_ACTIVE: Final = Gauge("authentication_token_cache_active_fetch_count", "", ("status",))
_HIT, _MISS, _BLOCKED, _IN_FLIGHT = ("hit",), ("miss",), ("blocked",), ("in_flight",)
_ACTIVE.add(_BLOCKED, 0)
_ACTIVE.add(_IN_FLIGHT, 0)


class ExpiringCache(Generic[K, V]):
    """A bounded dictionary whose entries vanish after `seconds`; 0 keeps nothing."""

    def __init__(self, seconds: float, *, limit: int = _LIMIT, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
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

    def put(self, key: K, value: V, at_most: float = math.inf) -> None:
        """`at_most`: the seconds that what comes from elsewhere is still good for."""
        seconds = min(self.seconds, at_most)
        if seconds <= 0:
            return
        if len(self._entries) >= self._limit:
            self._evict()
        self._entries[key] = (self._clock() + seconds, value)

    def _evict(self) -> None:
        now = self._clock()
        self._entries = {k: e for k, e in self._entries.items() if e[0] > now}
        while len(self._entries) >= self._limit:  # all alive: the oldest goes
            del self._entries[next(iter(self._entries))]


class CachedTokenAuthenticator:
    """Remembers what another token authenticator found; for `failure_seconds`, too, that it found nobody.

    What it found is `shared` with other replicas, and no older for that.
    """

    def __init__(
        self,
        inner: TokenAuthenticator,
        seconds: float = SUCCESS_SECONDS,
        *,
        failure_seconds: float = 0,
        shared: SharedTokens | None = None,
    ) -> None:
        self._inner = inner
        self._shared = shared
        self._found = ExpiringCache[bytes, Authenticated](seconds)
        self._refused = ExpiringCache[bytes, bool](failure_seconds)
        self._asking: dict[bytes, asyncio.Task[Authenticated | None]] = {}
        self._salt = secrets.token_bytes(32)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        key = self._key(token, audiences)
        found = self._found.get(key)
        if found is not None or self._refused.get(key):
            REQUESTS.add(_HIT)
            _SECONDS.observe(_HIT, 0.0)  # upstream's are whole milliseconds, too
            return found
        began = time.monotonic()
        REQUESTS.add(_MISS)
        _ACTIVE.add(_BLOCKED, 1)
        try:
            return await self._shared_answer(key, token, audiences)
        finally:
            _ACTIVE.add(_BLOCKED, -1)
            _SECONDS.observe(_MISS, time.monotonic() - began)

    async def _shared_answer(self, key: bytes, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """Of one question for all that ask it now."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, token, audiences))
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)  # one caller's cancellation is not the others'

    async def _ask(self, key: bytes, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        if self._shared is not None and (known := await self._shared.get(token, audiences)) is not None:
            self._found.put(key, *known)
            return known[0]
        fetched = "error"
        _ACTIVE.add(_IN_FLIGHT, 1)
        try:
            result = await self._inner.authenticate_token(token, audiences)
            fetched = "ok"
        finally:
            FETCHES.add((fetched,))
            _ACTIVE.add(_IN_FLIGHT, -1)
        if result is not None:
            self._found.put(key, result)
            if self._shared is not None:
                await self._shared.put(token, audiences, result)
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
