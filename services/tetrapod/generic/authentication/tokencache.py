"""A short-lived cache of token authentication results.

With it, the token of a busy client is not checked for every request.
Upstream: k8s.io/apiserver/pkg/authentication/token/cache. Successes are cached for 10 s, and rejections without an
error if configured. Errors are never cached. Concurrent checks of one token share one result. The key is a keyed hash
that is useless outside this process; tokens are not stored.
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
from tetrapod.generic.metrics.counters import Counter, Gauge
from tetrapod.generic.metrics.histograms import Histogram
from tetrapod.machinery.boundedcache import BoundedCache, weigh
from tetrapod.machinery.failure import result_of
from tetrapod.machinery.user import weigh_user

if TYPE_CHECKING:
    from tetrapod.generic.authentication.sharedtokens import SharedTokens

K = TypeVar("K")
V = TypeVar("V")

SUCCESS_SECONDS: Final = 10.0
_LIMIT: Final = 8192
REQUESTS: Final = Counter("authentication_token_cache_request_total", "", ("status",))
FETCHES: Final = Counter("authentication_token_cache_fetch_total", "", ("status",))
_SECONDS: Final = Histogram(
    "authentication_token_cache_request_duration_seconds",
    "",
    ("status",),
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_ACTIVE: Final = Gauge("authentication_token_cache_active_fetch_count", "", ("status",))
_HIT, _MISS, _BLOCKED, _IN_FLIGHT = ("hit",), ("miss",), ("blocked",), ("in_flight",)
_ACTIVE.add(_BLOCKED, 0)
_ACTIVE.add(_IN_FLIGHT, 0)


class ExpiringCache(Generic[K, V]):
    """A mapping whose entries expire, bounded by count and by bytes.

    The least recently used entries are evicted first.
    """

    def __init__(
        self,
        seconds: float,
        *,
        limit: int = _LIMIT,
        size: int = 16 << 20,
        weigh_value: Callable[[V], int] = weigh,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create an empty cache. Entries of more than 256 KiB are not stored.

        Args:
            seconds: how long entries are valid; 0 stores nothing.
            limit: the most entries.
            size: the most bytes of all keys and values.
            weigh_value: returns the number of bytes of a value.
            clock: returns the current time in seconds.
        """
        self.seconds = seconds
        self._clock = clock
        self._entries: BoundedCache[K, tuple[float, V]] = BoundedCache(
            count=limit,
            size=size,
            largest=256 << 10,
            weigh_entry=lambda key, entry: weigh(key) + weigh_value(entry[1]) + 100,
        )

    def get(self, key: K) -> V | None:
        """Return the value of `key`, or None if it is missing or expired."""
        entry = self._entries.recall(key)
        if entry is None:
            return None
        if entry[0] <= self._clock():
            self._entries.discard(key)
            return None
        return entry[1]

    def put(self, key: K, value: V, at_most: float = math.inf) -> None:
        """Store a value for the `seconds` of the cache, or for `at_most` seconds if those are fewer."""
        seconds = min(self.seconds, at_most)
        if seconds > 0:
            self._entries.keep(key, (self._clock() + seconds, value))


def _weigh(authenticated: Authenticated) -> int:
    return weigh_user(authenticated.user) + weigh(
        (authenticated.audiences, dict(authenticated.annotations), authenticated.warnings)
    )


class CachedTokenAuthenticator:
    """A token authenticator that caches the results of another one.

    Concurrent calls with the same token and audiences share one call of `inner`. Its exceptions are passed on and not
    cached.

    Args:
        inner: the authenticator whose results are cached.
        seconds: how long a user is cached.
        failure_seconds: how long the result None is cached; 0 disables it.
        shared: the cache of users that replicas share; None for none. Sharing does not extend their validity.
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
        self._authenticated = ExpiringCache[bytes, Authenticated](seconds, weigh_value=_weigh)
        self._rejected = ExpiringCache[bytes, bool](failure_seconds)
        self._in_flight: dict[bytes, asyncio.Task[Authenticated | None]] = {}
        self._salt = secrets.token_bytes(32)

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        key = self._key(token, audiences)
        cached = self._authenticated.get(key)
        if cached is not None or self._rejected.get(key):
            REQUESTS.add(_HIT)
            _SECONDS.observe(_HIT, 0.0)  # upstream observes whole milliseconds, which are 0 as well
            return cached
        began = time.monotonic()
        REQUESTS.add(_MISS)
        _ACTIVE.add(_BLOCKED, 1)
        try:
            return await self._shared_answer(key, token, audiences)
        finally:
            _ACTIVE.add(_BLOCKED, -1)
            _SECONDS.observe(_MISS, time.monotonic() - began)

    async def _shared_answer(self, key: bytes, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        """Return the result of the inner authenticator, by one call that concurrent callers with the same key share.

        Cancelling one caller cancels neither the shared call nor the other callers.

        Args:
            key: the cache key of the token and the audiences.
            token: the token.
            audiences: the requested audiences.

        Raises:
            Exception: the exception of the inner authenticator, such as InvalidToken, for each of the callers.
        """
        task = self._in_flight.get(key)
        if task is None:
            task = self._in_flight[key] = asyncio.create_task(self._ask(key, token, audiences))
            task.add_done_callback(lambda done: self._finished(key, done))
        return await result_of(task)  # one cancelled caller must not cancel the others

    async def _ask(self, key: bytes, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        if self._shared is not None and (known := await self._shared.get(token, audiences)) is not None:
            self._authenticated.put(key, *known)
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
            self._authenticated.put(key, result)
            if self._shared is not None:
                await self._shared.put(token, audiences, result)
        else:
            self._rejected.put(key, True)
        return result

    def _finished(self, key: bytes, task: asyncio.Task[Authenticated | None]) -> None:
        self._in_flight.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieve the exception: all callers may have been cancelled

    def _key(self, token: str, audiences: tuple[str, ...]) -> bytes:
        digest = hashlib.blake2b(key=self._salt, digest_size=32)
        for part in (token, *audiences):
            encoded = part.encode("utf-8", "surrogateescape")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
        return digest.digest()
