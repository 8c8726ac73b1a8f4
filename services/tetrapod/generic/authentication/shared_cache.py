"""The optional cache in redis in which replicas share the results of token and access reviews.

A restarted replica need not request them again. If a call fails or times out, it counts as a cache miss and redis is
not called for the next 5 seconds. Redis is not trusted. Keys are digests with a secret that the replicas of one service
share. Values are authenticated with it, together with their key and expiry. So a writer to redis can neither forge the
user of a token or a permission, nor replay expired entries.
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

_TIMEOUT_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 5.0
_HASH: Final = "sha256"
_MAC_SIZE: Final = 32


class CachedValue(NamedTuple):
    """A value from the cache, and the remaining seconds for which it is valid (more than 0)."""

    value: Any
    seconds: float


class SharedCache:
    """A cache in redis that replicas share, as one process uses it.

    If redis fails, `get` and `put` do not raise: nothing is stored, and every entry counts as missing.
    """

    def __init__(self, url: str, password_file: str = "", *, secret: bytes, timeout: float = _TIMEOUT_SECONDS) -> None:
        """Create the cache; the connection is made at the first call.

        Args:
            url: the address of redis, such as `rediss://host:6379/0`.
            password_file: the file with the password, read for each connection; "" for none.
            secret: the key that the replicas share, which authenticates the entries. Redis does not know it.
            timeout: the limit of one call, in seconds.
        """
        self._seal = _Seal(secret)
        self._url = url
        self._password_file = password_file
        self._timeout = timeout
        self._redis: Any = None
        self._paused_until = 0.0

    async def get(self, purpose: str, request: bytes) -> CachedValue | None:
        """Return the value that a replica stored for a request, or None if it is missing, expired or forged.

        It is also None if redis cannot be reached: nothing is raised.

        Args:
            purpose: the kind of request, such as `token`. Equal requests of different purposes have different values.
            request: the encoded request whose answer is cached, such as a SubjectAccessReview.
        """
        key = self._seal.key(purpose, request)
        data = await self._call("get", key)
        return None if data is None else self._seal.open(key, data)

    async def put(self, purpose: str, request: bytes, value: Any, seconds: float) -> None:
        """Store `value`, which must be JSON, for `seconds`. Values valid for less than a millisecond are not stored.

        `purpose` and `request` are those of `get`. If redis cannot be reached, the value is not stored and nothing is
        raised.
        """
        if (milliseconds := int(seconds * 1000)) > 0:
            key = self._seal.key(purpose, request)
            await self._call("set", key, self._seal.close(key, value, seconds), px=milliseconds)

    async def close(self) -> None:
        """Close the connection to redis, if there is one."""
        if self._redis is not None:
            await self._redis.aclose()

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        if time.monotonic() < self._paused_until:
            return None
        try:
            client = self._client()  # outside the timeout, because the first call imports a module
            async with asyncio.timeout(self._timeout):
                return await getattr(client, name)(*args, **options)
        except Exception as error:  # requests must not fail because of redis
            log.info("redis is not used for %g s: %s", _PAUSE_SECONDS, error or type(error).__name__)
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            return None

    def _client(self) -> Any:
        if self._redis is None:
            from redis.asyncio import Redis

            credentials = {"credential_provider": _credentials(self._password_file)} if self._password_file else {}
            self._redis = Redis.from_url(self._url, **credentials)
        return self._redis


def _credentials(file: str) -> Any:
    """Return a redis credential provider that reads the password from `file` for each new connection.

    Connecting raises OSError if the file cannot be read.
    """
    from redis.credentials import CredentialProvider

    class Password(CredentialProvider):
        def get_credentials(self) -> tuple[str]:
            return (Path(file).read_text("utf-8").strip(),)

    return Password()


class _Seal:
    """Authenticates the cache's entries, so that a writer to redis can forge neither a permission nor a user.

    It derives an HMAC key from the secret that the replicas share. The keys in redis are HMACs too.
    """

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"tetrapod: answers shared through redis", _HASH)

    def key(self, purpose: str, request: bytes) -> str:
        return f"tetrapod:{purpose}:{hmac.digest(self._key, request, _HASH).hex()}"

    def close(self, key: str, value: Any, seconds: float) -> bytes:
        body = orjson.dumps({"answer": value, "until": time.time() + seconds})
        return self._mac(key, body) + body

    def open(self, key: str, data: bytes) -> CachedValue | None:
        """Return the value of an entry that was read at `key`, or None.

        None means that the entry has expired, was stored under another key, or is forged. The latter two are logged.
        """
        mac, body = data[:_MAC_SIZE], data[_MAC_SIZE:]
        if not hmac.compare_digest(mac, self._mac(key, body)):
            log.warning("an entry of the shared cache is forged: another client writes to that redis")
            return None
        entry = orjson.loads(body)
        left = entry["until"] - time.time()
        return CachedValue(entry["answer"], left) if left > 0 else None

    def _mac(self, key: str, body: bytes) -> bytes:
        return hmac.digest(self._key, b"%b\0%b" % (key.encode(), body), _HASH)
