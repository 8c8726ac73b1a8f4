"""The users of accepted tokens, shared between replicas through `SharedCache`. Rejected tokens are not stored."""

from __future__ import annotations

from tetrapod.generic.authentication.delegating import user_from_wire, user_to_wire
from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.generic.authentication.shared_cache import SharedCache


class SharedTokens:
    """The accepted tokens of one authenticator in the shared cache.

    Args:
        cache: the shared cache.
        source: identifies the authenticator, such as the URL of its webhook; entries of other sources are not used.
        seconds: how long entries are valid.
    """

    def __init__(self, cache: SharedCache, source: str, seconds: float) -> None:
        self._cache = cache
        self._source = source.encode()
        self._seconds = seconds

    async def get(self, token: str, audiences: tuple[str, ...]) -> tuple[Authenticated, float] | None:
        """Return the cached result for a token with these audiences and its remaining validity in seconds, or None.

        The validity is at most the `seconds` of this replica, even if another replica stored the entry for longer. The
        result is None too if redis cannot be reached.
        """
        cached = await self._cache.get("token", cache_key(self._source, token, audiences))
        if cached is None:
            return None
        value = cached.value
        annotations, warnings = value.get("annotations") or {}, tuple(value.get("warnings") or ())
        result = Authenticated(user_from_wire(value["user"]), tuple(value["audiences"]), annotations, warnings)
        return result, min(cached.seconds, self._seconds)

    async def put(self, token: str, audiences: tuple[str, ...], authenticated: Authenticated) -> None:
        """Store the result for an accepted token with these requested audiences.

        Nothing is stored if redis cannot be reached; no exception is raised.
        """
        entry = {"user": user_to_wire(authenticated.user), "audiences": authenticated.audiences}
        if authenticated.annotations or authenticated.warnings:
            entry |= {"annotations": dict(authenticated.annotations), "warnings": authenticated.warnings}
        await self._cache.put("token", cache_key(self._source, token, audiences), entry, self._seconds)


def cache_key(source: bytes, token: str, audiences: tuple[str, ...]) -> bytes:
    """Return the key of a token and its requested audiences in the cache. Different arguments give different keys.

    The key contains the token itself; `SharedCache` hashes it.

    Args:
        source: identifies the authenticator, as in `SharedTokens`.
        token: the token.
        audiences: the requested audiences, whose order counts.
    """
    parts = [source, *(part.encode("utf-8", "surrogateescape") for part in (token, *audiences))]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
