"""What token reviews found, shared among replicas through redis (optional): a restart of one does not ask all over again.

Losing redis costs speed only: a call that fails or takes long is passed over, and redis is left alone for a while. Keys are
digests of the tokens; redis sees no token, but whoever can write there can say who a token is, so it belongs to the services alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from pathlib import Path
from typing import Any, Final

import orjson

from tetrapod.generic.authentication.delegating import user_from_wire, user_to_wire
from tetrapod.generic.authentication.interface import Authenticated, TokenAuthenticator
from tetrapod.generic.authentication.tokencache import SUCCESS_SECONDS

log = logging.getLogger(__name__)

_PREFIX: Final = "tetrapod:token:"
_PATIENCE: Final = 0.1
_LEFT_ALONE: Final = 5.0


class SharedTokenAuthenticator:
    """Stands between a process's own cache and the authenticator that asks."""

    def __init__(
        self, inner: TokenAuthenticator, url: str, password_file: str = "", seconds: float = SUCCESS_SECONDS, patience: float = _PATIENCE
    ) -> None:
        self._inner = inner
        self._url = url
        self._password_file = password_file
        self._milliseconds = int(seconds * 1000)
        self._patience = patience
        self._redis: Any = None
        self._away_until = 0.0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        key = _key(token, audiences)
        kept = await self._call("get", key)
        if kept is not None:
            return _load(kept)
        found = await self._inner.authenticate_token(token, audiences)
        if found is not None:
            await self._call("set", key, _dump(found), px=self._milliseconds)
        return found

    async def close(self) -> None:
        if self._redis is not None:
            await self._redis.aclose()

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if time.monotonic() < self._away_until:
            return None
        try:
            client = self._client()  # the first time, a module is read: that is not redis' fault
            async with asyncio.timeout(self._patience):
                return await getattr(client, name)(*args, **options)
        except Exception as error:  # whatever redis does, requests go on
            log.info("redis is passed over for a while: %s", error or type(error).__name__)
            self._away_until = time.monotonic() + _LEFT_ALONE
            return None

    def _client(self) -> Any:
        if self._redis is None:
            from redis.asyncio import Redis

            credentials = {"credential_provider": _credentials(self._password_file)} if self._password_file else {}
            self._redis = Redis.from_url(self._url, **credentials)
        return self._redis


def _credentials(file: str) -> Any:
    """Asked with each connection, so that a new password is taken up."""
    from redis.credentials import CredentialProvider

    class Password(CredentialProvider):
        def get_credentials(self) -> tuple[str]:
            return (Path(file).read_text().strip(),)

    return Password()


def _key(token: str, audiences: tuple[str, ...]) -> str:
    text = "\0".join((token, *audiences)).encode("utf-8", "surrogateescape")
    return _PREFIX + hashlib.sha256(text).hexdigest()


def _dump(found: Authenticated) -> bytes:
    return orjson.dumps({"user": user_to_wire(found.user), "audiences": found.audiences})


def _load(data: bytes) -> Authenticated:
    found = orjson.loads(data)
    return Authenticated(user_from_wire(found["user"]), tuple(found["audiences"]))
