"""The users of tokens, shared between replicas by generic/authentication/shared_cache.py. Rejections are not shared."""

from __future__ import annotations

from tetrapod.generic.authentication.delegating import user_from_wire, user_to_wire
from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.generic.authentication.shared_cache import SharedCache


class SharedTokens:
    """The shared cache of one authenticator.

    `source` names it, because another may answer differently. Entries are valid for `seconds`.
    """

    def __init__(self, cache: SharedCache, source: str, seconds: float) -> None:
        self._cache = cache
        self._source = source.encode()
        self._seconds = seconds

    async def get(self, token: str, audiences: tuple[str, ...]) -> tuple[Authenticated, float] | None:
        """Return the user of a token and for how many more seconds it is valid; None if it is not cached."""
        cached = await self._cache.get("token", cache_key(self._source, token, audiences))
        if cached is None:
            return None
        value = cached.value
        annotations, warnings = value.get("annotations") or {}, tuple(value.get("warnings") or ())
        result = Authenticated(user_from_wire(value["user"]), tuple(value["audiences"]), annotations, warnings)
        return result, min(cached.seconds, self._seconds)

    async def put(self, token: str, audiences: tuple[str, ...], authenticated: Authenticated) -> None:
        """Store the user of a token."""
        entry = {"user": user_to_wire(authenticated.user), "audiences": authenticated.audiences}
        if authenticated.annotations or authenticated.warnings:
            entry |= {"annotations": dict(authenticated.annotations), "warnings": authenticated.warnings}
        await self._cache.put("token", cache_key(self._source, token, audiences), entry, self._seconds)


def cache_key(source: bytes, token: str, audiences: tuple[str, ...]) -> bytes:
    """Return the cache key. Each part is preceded by its length, so different parts give different keys."""
    parts = [source, *(part.encode("utf-8", "surrogateescape") for part in (token, *audiences))]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
