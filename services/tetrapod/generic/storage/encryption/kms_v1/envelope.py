"""`KmsV1Envelope`: encrypts each value with a key of its own, which a KMS plugin encrypts (KMS v1).

A stored value is the length of the encrypted key in 2 bytes, the encrypted key, and the value encrypted with the key.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/envelope/envelope.go;
pkg/server/options/encryptionconfig/config.go, envelopePrefixTransformer
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Final

from tetrapod.generic.storage.encryption.ciphers import AesCbc, AesGcm
from tetrapod.generic.storage.encryption.kms_v1.service import KmsV1Service
from tetrapod.generic.storage.encryption.metrics import (
    CACHE_MISSES,
    DEK_CACHE_FILL,
    FROM_STORAGE,
    KEY_GENERATION,
    TO_STORAGE,
    record_arrival,
)
from tetrapod.generic.storage.encryption.transformer import Plain, Transformer, TransformError
from tetrapod.machinery.error_aggregate import aggregate_errors

_KEY_SIZE: Final = 32
_LENGTH_SIZE: Final = 2
_MAX_SEALED_KEY: Final = 0xFFFF


class KmsV1Envelope:
    """The `Transformer` of a KMS v1 plugin. Each write calls the plugin, and so does a read whose key is not cached.

    Args:
        service: the client of the plugin.
        cache_size: the maximum number of decrypted keys to cache; 0 or less disables the cache.
    """

    def __init__(self, service: KmsV1Service, cache_size: int) -> None:
        self._service = service
        self._cache_size = cache_size
        self._ciphers: OrderedDict[bytes, Transformer] = OrderedDict()

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        record_arrival(FROM_STORAGE)
        start = _LENGTH_SIZE + int.from_bytes(data[:_LENGTH_SIZE], "big")
        if len(data) < max(start, _LENGTH_SIZE):
            text = "failed to read uint16 length prefixed data"
            raise TransformError(f"invalid data encountered by envelope transformer: {text}")
        sealed_key = data[_LENGTH_SIZE:start]
        cipher = self._ciphers.get(sealed_key)
        if cipher is not None:
            self._ciphers.move_to_end(sealed_key)
        else:
            if self._cache_size > 0:
                CACHE_MISSES.add()
            cipher = self._keep(sealed_key, await self._service.decrypt(sealed_key))
        return await cipher.from_storage(data[start:], context)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        record_arrival(TO_STORAGE)
        started = time.perf_counter()
        key = os.urandom(_KEY_SIZE)
        KEY_GENERATION.observe((), time.perf_counter() - started)
        sealed_key = await self._service.encrypt(key)
        sealed = await self._keep(sealed_key, key).to_storage(data, context)
        if len(sealed_key) > _MAX_SEALED_KEY:
            text = f"cryptobyte: pending child length {len(sealed_key)} exceeds {_LENGTH_SIZE}-byte length prefix"
            raise TransformError(text)
        return len(sealed_key).to_bytes(_LENGTH_SIZE, "big") + sealed_key + sealed

    def _keep(self, sealed_key: bytes, key: bytes) -> Transformer:
        """Return the cipher of a key, and cache it. Raises TransformError if the key has an invalid size."""
        try:
            cipher = _GcmOrCbc(key)
        except ValueError:
            raise TransformError(f"crypto/aes: invalid key size {len(key)}") from None
        if self._cache_size > 0:
            self._ciphers[sealed_key] = cipher
            self._ciphers.move_to_end(sealed_key)
            if len(self._ciphers) > self._cache_size:
                self._ciphers.popitem(last=False)
            DEK_CACHE_FILL.set((), len(self._ciphers) / self._cache_size)
        return cipher


class _GcmOrCbc:
    """Encrypts by AES-GCM, and also decrypts AES-CBC, which releases before Kubernetes 1.25 wrote.

    Upstream: pkg/server/options/encryptionconfig/config.go, unionTransformers
    """

    def __init__(self, key: bytes) -> None:
        self._gcm = AesGcm(key)
        self._cbc = AesCbc(key)

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        try:
            return await self._gcm.from_storage(data, context)
        except TransformError as error:
            failure = str(error)
        try:
            return Plain((await self._cbc.from_storage(data, context)).data, True)
        except TransformError as error:
            raise TransformError(aggregate_errors([failure, str(error)])) from error

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        return await self._gcm.to_storage(data, context)
