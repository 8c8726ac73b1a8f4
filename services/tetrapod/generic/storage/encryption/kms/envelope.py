"""`Envelope`: encrypts values with keys that a KMS plugin protects (KMS v2).

A stored value contains the seed from which its key is derived, encrypted by the plugin. Decrypted seeds are cached, so
that the plugin is called once for each.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2/envelope.go, cache.go
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from typing import Any, Final

from tetrapod.generic.observability.tracing.spans import current_span, traced
from tetrapod.generic.storage.encryption.ciphers import AesGcm, SeededGcm
from tetrapod.generic.storage.encryption.kms import kms_pb2 as pb
from tetrapod.generic.storage.encryption.kms.objects import SEED, check, decoded, source_key
from tetrapod.generic.storage.encryption.kms.probe import KmsProbe
from tetrapod.generic.storage.encryption.metrics import (
    CACHE_MISSES,
    FROM_STORAGE,
    SEED_CACHE_SIZE,
    TO_STORAGE,
    record_key_use,
)
from tetrapod.generic.storage.encryption.transformer import Plain, Transformer, TransformError
from tetrapod.machinery.failure import result_of

_SEEDS_KEPT: Final = 10_000
"""The maximum number of decrypted seeds to cache. Stored values use about as many seeds as there are key IDs times
server starts.
"""


def _attributes(envelope: Envelope, *_: object) -> dict[str, Any]:
    return {"transformer.provider.name": envelope.provider}


class Envelope:
    """The `Transformer` of a KMS plugin.

    It encrypts with the current seed of `probe`. To decrypt a value, it lets the plugin decrypt the seed that is stored
    with the value, and caches that seed. `provider` is the name of the plugin.
    """

    def __init__(self, probe: KmsProbe) -> None:
        self.provider = probe.name
        self._probe = probe
        self._ciphers: OrderedDict[bytes, Transformer] = OrderedDict()
        self._fetches: dict[bytes, asyncio.Task[Transformer]] = {}

    @traced("TransformFromStorage with envelopeTransformer", _attributes)
    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        span = current_span()
        span.event("About to decode encrypted object")
        obj = decoded(data)
        span.event("Decoded encrypted object")
        state = self._probe.state()
        cipher = await self._cipher(obj)
        record_key_use(FROM_STORAGE, self._probe.name, obj.keyID)
        span.event("About to decrypt data using DEK")
        plain, stale = await cipher.from_storage(obj.encryptedData, context)
        span.event("Data decryption succeeded")
        differs = obj.keyID != state.sealed.keyID or obj.encryptedDEKSourceType != state.sealed.encryptedDEKSourceType
        return Plain(plain, stale or differs)

    @traced("TransformToStorage with envelopeTransformer", _attributes)
    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        span = current_span()
        state = self._probe.state()
        state.check_writable()
        self._keep(state.source, state.cipher)
        sealed = pb.EncryptedObject()
        sealed.CopyFrom(state.sealed)
        span.event("About to encrypt data using DEK")
        sealed.encryptedData = await state.cipher.to_storage(data, context)
        span.event("Data encryption succeeded")
        record_key_use(TO_STORAGE, self._probe.name, sealed.keyID)
        span.event("About to encode encrypted object")
        check(sealed)
        stored = sealed.SerializeToString()
        span.event("Encoded encrypted object")
        return stored

    async def _cipher(self, obj: pb.EncryptedObject) -> Transformer:
        source = source_key(obj)
        cipher = self._ciphers.get(source)
        if cipher is not None:
            return cipher
        span = current_span()
        span.event("About to decrypt DEK using remote service")
        fetch = self._fetches.get(source)
        if fetch is None:
            fetch = self._fetches[source] = asyncio.create_task(self._ask(source, obj))
            fetch.add_done_callback(lambda _: self._fetches.pop(source, None))
        cipher = await result_of(fetch)
        span.event("DEK decryption succeeded")
        return cipher

    async def _ask(self, source: bytes, obj: pb.EncryptedObject) -> Transformer:
        CACHE_MISSES.add()
        try:
            key = await self._probe.service.decrypt(str(uuid.uuid4()), obj)
        except TransformError as error:
            raise TransformError(f"failed to decrypt DEK, error: {error}", error.status) from error
        try:
            cipher: Transformer = SeededGcm(key) if obj.encryptedDEKSourceType == SEED else AesGcm(key)
        except ValueError:
            raise TransformError(f"crypto/aes: invalid key size {len(key)}") from None
        self._keep(source, cipher)
        return cipher

    def _keep(self, source: bytes, cipher: Transformer) -> None:
        if source not in self._ciphers:
            self._ciphers[source] = cipher
            if len(self._ciphers) > _SEEDS_KEPT:
                self._ciphers.popitem(last=False)
        SEED_CACHE_SIZE.set((self._probe.name,), len(self._ciphers))
