"""`KeyCache`: the public keys of the plugin that signs service account tokens.

They are fetched at the start, when the plugin's hint says so, and for a token with an unknown key.
Upstream: pkg/serviceaccount/externaljwt/plugin/keycache.go
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tetrapod.auth.tokens.external import external_pb2 as pb
from tetrapod.auth.tokens.external import metrics
from tetrapod.auth.tokens.external.client import SignerClient, SignerError
from tetrapod.auth.tokens.keys import VerificationKey, verification_key
from tetrapod.machinery.failure import result_of
from tetrapod.machinery.golang.quoting import go_quote

log = logging.getLogger(__name__)

_SYNC_TIMEOUT: Final = 60.0
_RETRY_SECONDS: Final = 10.0
_LONGEST_ID: Final = 1024
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
"""The seconds of the years 1 and 9999, between which a protobuf timestamp is valid."""


class KeyCache:
    """The public keys of the plugin; a `KeySource`.

    Attributes:
        listeners: functions without arguments, which are called after the keys have changed.

    Args:
        client: calls the plugin.
    """

    def __init__(self, client: SignerClient) -> None:
        self._client = client
        self._keys: tuple[VerificationKey, ...] = ()
        self._timestamp = 0.0
        self._refresh_at = 0.0
        self._sync: asyncio.Task[None] | None = None
        self.listeners: list[Callable[[], None]] = []

    @property
    def keys(self) -> Sequence[VerificationKey]:
        """All current keys."""
        return self._keys

    @property
    def max_age(self) -> int:
        """The seconds until the keys will be fetched again, at least 0."""
        return max(0, int(self._refresh_at - time.time()))

    async def find(self, key_id: str) -> Sequence[VerificationKey]:
        """Return the keys with an ID, or all for "".

        If no key has the ID, the keys are first fetched again. The result is () if there is still none, or if the fetch
        fails, which is logged.
        """
        if matching := self._current(key_id):
            return matching
        try:
            await self._synced()
        except SignerError as error:
            log.error("Error while syncing keys: %s", error)
            return ()
        matching = self._current(key_id)
        if not matching:
            log.error("Key id %s not found after refresh", go_quote(key_id))
        return matching

    def _current(self, key_id: str) -> Sequence[VerificationKey]:
        return tuple(key for key in self._keys if key.id == key_id) if key_id else self._keys

    async def _synced(self) -> None:
        """Fetch and replace the keys as `sync` does, raising SignerError; concurrent callers share one call."""
        if self._sync is None or self._sync.done():
            self._sync = asyncio.create_task(self.sync(), name="external-jwt-keys")
        await result_of(self._sync)

    async def sync(self) -> None:
        """Fetch and replace the keys.

        Raises:
            SignerError: the call failed, or its response is invalid; the current keys remain.
        """
        code = "OK"
        try:
            await self._fetch()
        except SignerError as error:
            code = error.code
            raise error.within("while fetching token verification keys") from None
        finally:
            metrics.record_fetch(code)

    async def _fetch(self) -> None:
        try:
            response = await self._client.fetch_keys(_SYNC_TIMEOUT)
        except SignerError as error:
            raise error.within("while getting externally supported jwt signing keys") from None
        keys, timestamp = _keys_of(response), _timestamp_of(response)
        changed = (self._timestamp, self._keys) != (timestamp, keys)
        self._keys, self._timestamp = keys, timestamp
        self._refresh_at = time.time() + response.refresh_hint_seconds
        metrics.record_data(timestamp)
        if changed:
            for listener in self.listeners:
                listener()

    async def run(self) -> None:
        """Fetch the keys repeatedly, until cancelled.

        The plugin's last response says when the next fetch is due (refresh_hint_seconds). After an error, which is
        logged, it is due in 10 seconds.
        """
        wait = self._refresh_at - time.time()
        while True:
            await asyncio.sleep(max(0.0, wait))
            try:
                await self._synced()
                wait = self._refresh_at - time.time()
            except SignerError as error:
                log.error("when syncing supported public keys(Stale set of keys will be supported): %s", error)
                wait = _RETRY_SECONDS


def _keys_of(response: pb.FetchKeysResponse) -> tuple[VerificationKey, ...]:
    if response.refresh_hint_seconds <= 0:
        raise SignerError(f"found invalid refresh hint ({response.refresh_hint_seconds}s)")
    if not response.keys:
        raise SignerError("found no keys")
    _check_timestamp(response)
    return tuple(_key_of(key) for key in response.keys)


def _check_timestamp(response: pb.FetchKeysResponse) -> None:
    stamp, prefix = response.data_timestamp, "invalid data timestamp: proto: "
    if not response.HasField("data_timestamp"):
        raise SignerError(f"{prefix}invalid nil Timestamp")
    shown = f"seconds:{stamp.seconds}" + (f" nanos:{stamp.nanos}" if stamp.nanos else "")
    if stamp.seconds < _EARLIEST:
        raise SignerError(f"{prefix}timestamp ({shown}) before 0001-01-01")
    if stamp.seconds > _LATEST:
        raise SignerError(f"{prefix}timestamp ({shown}) after 9999-12-31")
    if not 0 <= stamp.nanos < 1_000_000_000:
        raise SignerError(f"{prefix}timestamp ({shown}) has out-of-range nanos")


def _timestamp_of(response: pb.FetchKeysResponse) -> float:
    return response.data_timestamp.seconds + response.data_timestamp.nanos / 1e9


def _key_of(given: pb.Key) -> VerificationKey:
    if not given.key_id or len(given.key_id.encode()) > _LONGEST_ID:
        raise SignerError(f"found invalid public key id {go_quote(given.key_id)}")
    if not given.key:
        raise SignerError("found empty public key")
    try:
        key = serialization.load_der_public_key(given.key)
        if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
            raise ValueError("unknown public key type, must be *rsa.PublicKey or *ecdsa.PublicKey")
        return verification_key(key, given.key_id, published=not given.exclude_from_oidc_discovery)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SignerError(f"while parsing external public keys: {error}") from None
