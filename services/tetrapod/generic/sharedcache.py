"""What others were asked about tokens and access, shared among replicas through redis (optional): one that restarts does not ask anew.

Losing redis costs speed only: a call that fails or takes long is passed over, and redis is left alone for a while. Redis is not trusted:
keys are digests of the questions by a secret that replicas of one service have, and what is kept is sealed by it, together with its key
and its end. Whoever writes there cannot say who a token is or what somebody may do, nor bring back what has ended.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

log = logging.getLogger(__name__)

_PATIENCE: Final = 0.1
_LEFT_ALONE: Final = 5.0
_HASH: Final = "sha256"
_MAC_SIZE: Final = 32


class Kept(NamedTuple):
    """An answer, and for how many seconds it is still good."""

    answer: Any
    seconds: float


class SharedCache:
    """Of one process. Questions are told apart by their purpose: an answer to one is none to another."""

    def __init__(self, url: str, password_file: str = "", *, secret: bytes, patience: float = _PATIENCE) -> None:
        """`secret` is what replicas share and redis does not know."""
        self._seal = _Seal(secret)
        self._url = url
        self._password_file = password_file
        self._patience = patience
        self._redis: Any = None
        self._away_until = 0.0

    async def get(self, purpose: str, question: bytes) -> Kept | None:
        key = self._seal.key(purpose, question)
        data = await self._call("get", key)
        return None if data is None else self._seal.open(key, data)

    async def put(self, purpose: str, question: bytes, answer: Any, seconds: float) -> None:
        """`answer` is JSON. Nothing is kept for less than a millisecond."""
        if (milliseconds := int(seconds * 1000)) > 0:
            key = self._seal.key(purpose, question)
            await self._call("set", key, self._seal.close(key, answer, seconds), px=milliseconds)

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

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"tetrapod: answers shared through redis", _HASH)

    def key(self, purpose: str, question: bytes) -> str:
        return f"tetrapod:{purpose}:{hmac.digest(self._key, question, _HASH).hex()}"

    def close(self, key: str, answer: Any, seconds: float) -> bytes:
        body = orjson.dumps({"answer": answer, "until": time.time() + seconds})
        return self._mac(key, body) + body

    def open(self, key: str, data: bytes) -> Kept | None:
        """None for what is forged, or belongs elsewhere, or has ended."""
        mac, body = data[:_MAC_SIZE], data[_MAC_SIZE:]
        if not hmac.compare_digest(mac, self._mac(key, body)):
            log.warning("an entry of the shared cache is none of ours: somebody else writes to that redis")
            return None
        found = orjson.loads(body)
        left = found["until"] - time.time()
        return Kept(found["answer"], left) if left > 0 else None

    def _mac(self, key: str, body: bytes) -> bytes:
        return hmac.digest(self._key, b"%b\0%b" % (key.encode(), body), _HASH)
