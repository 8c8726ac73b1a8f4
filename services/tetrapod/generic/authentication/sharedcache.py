"""What token reviews found, shared among replicas through redis (optional): a restart of one does not ask all over again.

Losing redis costs speed only: a call that fails or takes long is passed over, and redis is left alone for a while. Redis is not trusted:
keys are digests of the tokens by a secret that replicas of one service have, and what is kept is sealed by it, together with its key and
its end. Whoever writes there cannot say who a token is, nor bring back what has ended.
"""

from __future__ import annotations

import asyncio
import hmac
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
_HASH: Final = "sha256"
_MAC_SIZE: Final = 32


class SharedTokenAuthenticator:
    """Stands between a process's own cache and the authenticator that asks."""

    def __init__(
        self,
        inner: TokenAuthenticator,
        url: str,
        password_file: str = "",
        *,
        secret: bytes,
        seconds: float = SUCCESS_SECONDS,
        patience: float = _PATIENCE,
    ) -> None:
        """`secret` is what replicas share and redis does not know."""
        self._inner = inner
        self._seal = _Seal(secret, seconds)
        self._url = url
        self._password_file = password_file
        self._milliseconds = int(seconds * 1000)
        self._patience = patience
        self._redis: Any = None
        self._away_until = 0.0

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        key = self._seal.key(token, audiences)
        kept = await self._call("get", key)
        if kept is not None and (opened := self._seal.open(key, kept)) is not None:
            return opened
        found = await self._inner.authenticate_token(token, audiences)
        if found is not None:
            await self._call("set", key, self._seal.close(key, found), px=self._milliseconds)
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


class _Seal:
    """HMAC by a key that is made of the secret, so that the secret itself is used for nothing here."""

    def __init__(self, secret: bytes, seconds: float) -> None:
        self._key = hmac.digest(secret, b"tetrapod: tokens shared through redis", _HASH)
        self._seconds = seconds

    def key(self, token: str, audiences: tuple[str, ...]) -> str:
        text = "\0".join((token, *audiences)).encode("utf-8", "surrogateescape")
        return _PREFIX + hmac.digest(self._key, text, _HASH).hex()

    def close(self, key: str, found: Authenticated) -> bytes:
        said = {"user": user_to_wire(found.user), "audiences": found.audiences, "until": time.time() + self._seconds}
        body = orjson.dumps(said)
        return self._mac(key, body) + body

    def open(self, key: str, data: bytes) -> Authenticated | None:
        """None for what is forged, or belongs elsewhere, or has ended."""
        mac, body = data[:_MAC_SIZE], data[_MAC_SIZE:]
        if not hmac.compare_digest(mac, self._mac(key, body)):
            log.warning("an entry of the shared token cache is none of ours: somebody else writes to that redis")
            return None
        found = orjson.loads(body)
        if found["until"] < time.time():
            return None
        return Authenticated(user_from_wire(found["user"]), tuple(found["audiences"]))

    def _mac(self, key: str, body: bytes) -> bytes:
        return hmac.digest(self._key, b"%b\0%b" % (key.encode(), body), _HASH)
