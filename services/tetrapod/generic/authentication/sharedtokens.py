"""Whose a token is, as one replica was told, for the others (generic/sharedcache.py). What is refused is not shared."""

from __future__ import annotations

from tetrapod.generic.authentication.delegating import user_from_wire, user_to_wire
from tetrapod.generic.authentication.interface import Authenticated
from tetrapod.generic.sharedcache import SharedCache


class SharedTokens:
    """`source` says who answers: what one says is no answer of another. An answer is good for so many `seconds` everywhere."""

    def __init__(self, cache: SharedCache, source: str, seconds: float) -> None:
        self._cache = cache
        self._source = source.encode()
        self._seconds = seconds

    async def get(self, token: str, audiences: tuple[str, ...]) -> tuple[Authenticated, float] | None:
        """And for how many seconds it is still good."""
        kept = await self._cache.get("token", question(self._source, token, audiences))
        if kept is None:
            return None
        answer = kept.answer
        annotations, warnings = answer.get("annotations") or {}, tuple(answer.get("warnings") or ())
        found = Authenticated(user_from_wire(answer["user"]), tuple(answer["audiences"]), annotations, warnings)
        return found, min(kept.seconds, self._seconds)

    async def put(self, token: str, audiences: tuple[str, ...], found: Authenticated) -> None:
        answer = {"user": user_to_wire(found.user), "audiences": found.audiences}
        if found.annotations or found.warnings:
            answer |= {"annotations": dict(found.annotations), "warnings": found.warnings}
        await self._cache.put("token", question(self._source, token, audiences), answer, self._seconds)


def question(source: bytes, token: str, audiences: tuple[str, ...]) -> bytes:
    """Parts with their lengths: no two questions are the same bytes."""
    parts = [source, *(part.encode("utf-8", "surrogateescape") for part in (token, *audiences))]
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
