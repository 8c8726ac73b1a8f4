"""Transformers between stored and plain values, and the choice among several of them by a value's prefix.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/transformer.go,
pkg/storage/value/encrypt/identity/identity.go
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tetrapod.generic.storage.encryption.metrics import FROM_STORAGE, NO_RPC, OK, TO_STORAGE, transformed
from tetrapod.generic.storage.unreadable import ENCRYPTED, NOT_FOR_IDENTITY
from tetrapod.machinery.error_aggregate import aggregate_errors


class TransformError(Exception):
    """A failed encryption or decryption, with upstream's text. `status` is the gRPC status if a plugin call failed."""

    def __init__(self, text: str, status: str = NO_RPC) -> None:
        super().__init__(text)
        self.status = status


class Plain(NamedTuple):
    """A decrypted value.

    Attributes:
        data: the plain bytes.
        stale: whether a new value would be encrypted with another key or provider, so that the next write must rewrite
            this one.
    """

    data: bytes
    stale: bool


class Transformer(Protocol):
    """Encrypts and decrypts values. Both methods raise TransformError.

    `context` is the full key of the value in the store. Authenticated ciphers reject a value that was moved to another
    key.
    """

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        """Decrypt a stored value, from which the caller has removed the prefix that names the provider.

        `context` is the full key of the value in the store, as at its encryption.
        """
        ...

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        """Encrypt a value for storage. The caller then puts the prefix that names the provider before it.

        `context` is the full key of the value in the store; decryption needs the same key.
        """
        ...


class Identity:
    """The transformer of the provider `identity`, which stores plain values. It rejects reading an encrypted value."""

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        if data.startswith(ENCRYPTED):
            raise TransformError(NOT_FOR_IDENTITY)
        return Plain(data, False)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        return data


class WritesPlain:
    """The transformer of a resource that is never encrypted. It reads values that a former version encrypted.

    Args:
        former: decrypts these values, which are stale.
    """

    def __init__(self, former: Transformer) -> None:
        self._former = former

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        if not data.startswith(ENCRYPTED):
            return Plain(data, False)
        plain, _ = await self._former.from_storage(data, context)
        return Plain(plain, True)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        return data


class Prefixed(NamedTuple):
    """A transformer and the prefix of its values, which names its provider or key."""

    prefix: bytes
    transformer: Transformer


class PrefixTransformer:
    """Reads with each transformer whose prefix matches until one succeeds, and writes with the first one.

    A value that was not read with the first one is stale.
    """

    def __init__(self, resource: str, unmatched: str, transformers: Sequence[Prefixed]) -> None:
        """Create a transformer.

        Args:
            resource: the resource in metrics.
            unmatched: the error text for a value that matches no prefix.
            transformers: the providers or keys in the order of the configuration, the one for writes first.
        """
        self._resource = resource
        self._unmatched = unmatched
        self._transformers = transformers

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        started = time.perf_counter()
        errors: list[tuple[str, str]] = []
        for number, (prefix, transformer) in enumerate(self._transformers):
            if not data.startswith(prefix):
                continue
            try:
                plain, stale = await transformer.from_storage(data[len(prefix) :], context)
            except TransformError as error:
                if prefix:  # identity has an empty prefix and rejects encrypted values; its error is not reported
                    transformed(self._resource, FROM_STORAGE, prefix.decode(), started, error.status)
                    errors.append((str(error), error.status))
                continue
            transformed(self._resource, FROM_STORAGE, prefix.decode() or "identity", started, OK)
            return Plain(plain, stale or number > 0)
        if errors:
            raise TransformError(aggregate_errors(text for text, _ in errors), errors[0][1])
        transformed(self._resource, FROM_STORAGE, "unknown", started, NO_RPC)
        raise TransformError(self._unmatched)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        started = time.perf_counter()
        prefix, transformer = self._transformers[0]
        try:
            sealed = await transformer.to_storage(data, context)
        except TransformError as error:
            transformed(self._resource, TO_STORAGE, prefix.decode(), started, error.status)
            raise
        transformed(self._resource, TO_STORAGE, prefix.decode(), started, OK)
        return prefix + sealed
