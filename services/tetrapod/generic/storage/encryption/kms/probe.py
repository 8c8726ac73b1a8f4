"""`KmsProbe`: polls a plugin's health and key ID, and holds the current seed for encryption.

A seed is the random data from which the encryption keys of values are derived. Reads do not depend on the health.
Writes continue while the plugin reports the key ID of the seed, and for three minutes afterwards. A new key ID of the
plugin causes a new seed.
Upstream: staging/src/k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go, kmsv2PluginProbe
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tetrapod.generic.configuration.server_identity import label_hash
from tetrapod.generic.storage.encryption.ciphers import SEED_SIZE, SeededGcm
from tetrapod.generic.storage.encryption.kms import kms_pb2 as pb
from tetrapod.generic.storage.encryption.kms.objects import SEED, check, key_id_error, source_key
from tetrapod.generic.storage.encryption.kms.service import KmsService
from tetrapod.generic.storage.encryption.metrics import INVALID_KEY_IDS, KEY_GENERATION, record_status_key
from tetrapod.generic.storage.encryption.transformer import TransformError
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.golang.quoting import go_quote

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 60.0
POLL_SECONDS_WHEN_UNHEALTHY: Final = 10.0
WRITE_SECONDS: Final = 180.0
_HEALTHY_SECONDS, _UNHEALTHY_SECONDS = 20.0, 3.0
_VERSIONS: Final = ("v2", "v2beta1")


@dataclass(frozen=True, slots=True)
class KmsState:
    """The current seed of a KMS plugin, from which the keys of stored values are derived.

    The plugin has encrypted the seed, and the result is stored with each value.

    - `cipher` encrypts with keys that are derived from the seed.
    - `sealed` is the stored message without the data: the encrypted seed, the key ID, annotations.
    - `source` is the cache key of the seed (see `source_key`).
    - `expires` is the Unix time until which writes are allowed.
    """

    cipher: SeededGcm
    sealed: pb.EncryptedObject
    source: bytes
    expires: float

    def check_writable(self) -> None:
        """Raise TransformError if the time has passed until which writes with this seed are allowed."""
        now = time.time()
        if now > self.expires:
            raise TransformError(
                f"encryptedDEKSource with keyID hash {go_quote(label_hash(self.sealed.keyID))} expired at "
                f"{_rfc3339(self.expires)} (current time is {_rfc3339(now)})"
            )


class KmsProbe:
    """The poller of one KMS plugin, which knows the plugin's health and the current seed for encryption.

    Args:
        name: the name of the plugin in the EncryptionConfiguration.
        service: the client of the plugin.
    """

    def __init__(self, name: str, service: KmsService) -> None:
        self.name = name
        self.service = service
        self._state: KmsState | None = None
        self._version = ""
        self._checking = asyncio.Lock()
        self._checked = float("-inf")
        self._good_for = 0.0
        self._error: Failure[TransformError] | None = None

    def state(self) -> KmsState:
        """Return the current seed and key ID. Raises TransformError if the plugin has not encrypted a seed yet."""
        if self._state is None:
            raise TransformError("got unexpected nil transformer")
        return self._state

    async def check(self) -> None:
        """Ask the plugin for its health and key ID; raise TransformError if it is unhealthy.

        Results are cached for 20 seconds if healthy, else for 3. A changed key ID replaces the seed. As upstream, the
        text of a failed call begins with its context only in the check that made the call, not in those from the cache.
        """
        async with self._checking:
            if time.monotonic() - self._checked >= self._good_for:
                context, error = await self._ask()
                self._error = None if error is None else Failure(error)
                self._checked = time.monotonic()
                self._good_for = _HEALTHY_SECONDS if self._error is None else _UNHEALTHY_SECONDS
                if error is not None:
                    raise TransformError(f"{context}{error}", error.status)
            if self._error is not None:
                raise self._error.error()

    async def poll(self) -> None:
        """Check the plugin every minute until cancelled, or every ten seconds while it is unhealthy."""
        while True:
            healthy = await self._is_healthy()
            await asyncio.sleep(POLL_SECONDS if healthy else POLL_SECONDS_WHEN_UNHEALTHY)

    async def prime(self) -> None:
        """Make the first check. A failure is only logged, because the plugin may start later than the server."""
        await self._is_healthy()

    async def _is_healthy(self) -> bool:
        try:
            await self.check()
        except TransformError as error:
            log.error("kms plugin %s failed health check probe: %s", self.name, error)
            return False
        return True

    async def _ask(self) -> tuple[str, TransformError | None]:
        """Ask the plugin for its status. Return the context of the error, and the error or None."""
        try:
            status = await self.service.status()
        except TransformError as error:
            context = f"failed to perform status section of the healthz check for KMS Provider {self.name}, error: "
            return context, TransformError(str(error), error.status)
        errors = [error for error in (self._health_error(status), self._version_error(status)) if error]
        if (key_error := key_id_error(status.key_id)) is not None:
            INVALID_KEY_IDS.add((self.name, key_error[0]))
            errors.append(f"got invalid KMSv2 KeyID hash {go_quote(label_hash(status.key_id))}: {key_error[1]}")
        else:
            record_status_key(self.name, status.key_id)
            errors += await self._follow_key(status.key_id)
        if not errors:
            return "", None
        text = aggregate_errors(errors)
        return "", TransformError(f"kmsv2 Provider {self.name} is not healthy, error: {text}")

    @staticmethod
    def _health_error(status: pb.StatusResponse) -> str:
        return "" if status.healthz == "ok" else f"got unexpected healthz status: {status.healthz}"

    def _version_error(self, status: pb.StatusResponse) -> str:
        if status.version not in _VERSIONS:
            return f"expected KMSv2 API version v2, got {status.version}"
        self._version = self._version or status.version
        if self._version == status.version:
            return ""
        text = "KMSv2 API version should not change after the initial status response version"
        return f"{text} {self._version}, got {status.version}"

    async def _follow_key(self, key_id: str) -> list[str]:
        """Handle the plugin's current key ID, as reported by its status.

        If the current seed was encrypted with this key, the time is extended until which writes may use the seed.
        Otherwise the plugin encrypts a new seed, which replaces the current one.

        Args:
            key_id: the key ID.

        Returns:
            Error texts, empty if it succeeded; the previous seed is kept if a new one cannot be created.
        """
        expires = time.time() + WRITE_SECONDS  # before the call, so that this time is an upper bound
        state = self._state
        if state is not None and state.sealed.keyID == key_id:
            self._state = KmsState(state.cipher, state.sealed, state.source, expires)
            return []
        uid, fresh, failure = str(uuid.uuid4()), None, "<nil>"
        try:
            fresh = await self._new_seed(uid, expires)
        except TransformError as error:
            failure = str(error)
        if fresh is not None and fresh.sealed.keyID == key_id:
            self._state = fresh
            return []
        had = f"errState={'<nil>' if state is not None else 'got unexpected nil transformer'}, errGen={failure}"
        hashes = (
            key_id,
            fresh.sealed.keyID if fresh is not None else "",
            state.sealed.keyID if state is not None else "",
        )
        status_hash, new_hash, old_hash = (go_quote(label_hash(key)) for key in hashes)
        until = _rfc3339(state.expires) if state is not None else "0001-01-01T00:00:00Z"
        return [
            f"failed to rotate DEK uid={go_quote(uid)}, useSeed=true, {had}, statusKeyIDHash={status_hash}, "
            f"encryptKeyIDHash={new_hash}, stateKeyIDHash={old_hash}, expirationTimestamp={until}"
        ]

    async def _new_seed(self, uid: str, expires: float) -> KmsState:
        started = time.perf_counter()
        seed = os.urandom(SEED_SIZE)
        KEY_GENERATION.observe((), time.perf_counter() - started)
        try:
            answer = await self.service.encrypt(uid, seed)
        except TransformError as error:
            raise TransformError(f"failed to encrypt DEK, error: {error}", error.status) from error
        sealed = pb.EncryptedObject(
            keyID=answer.key_id,
            encryptedDEKSource=answer.ciphertext,
            annotations=answer.annotations,
            encryptedDEKSourceType=SEED,
        )
        check(sealed, with_data=False)
        return KmsState(SeededGcm(seed), sealed, source_key(sealed), expires)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
