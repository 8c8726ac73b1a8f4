"""Transformers: from what is stored to what is meant, and back; and the choice among several by what a value begins with.

Upstream: k8s.io/apiserver/pkg/storage/value/transformer.go, pkg/storage/value/encrypt/identity/identity.go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tetrapod.generic.storage.encryption.metrics import FROM_STORAGE, NO_RPC, OK, TO_STORAGE, transformed
from tetrapod.generic.storage.unreadable import ENCRYPTED, NOT_FOR_IDENTITY


class TransformError(Exception):
    """With upstream's text. `status` is the gRPC status where a plugin did not do as asked."""

    def __init__(self, text: str, status: str = NO_RPC) -> None:
        super().__init__(text)
        self.status = status


class Plain(NamedTuple):
    """A `stale` value is right, but another key or provider would be used today: the next write writes it anew."""

    data: bytes
    stale: bool


class Transformer(Protocol):
    """`context` is the whole key of the value: a value moved to another key is no longer readable. Both raise TransformError."""

    async def from_storage(self, data: bytes, context: bytes) -> Plain: ...

    async def to_storage(self, data: bytes, context: bytes) -> bytes: ...


class Identity:
    """Leaves values as they are, and does not take what another has encrypted for a value."""

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        if data.startswith(ENCRYPTED):
            raise TransformError(NOT_FOR_IDENTITY)
        return Plain(data, False)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        return data


class Prefixed(NamedTuple):
    prefix: bytes
    transformer: Transformer


class PrefixTransformer:
    """Reads with each transformer whose prefix a value has, until one can; writes with the first."""

    def __init__(self, resource: str, unmatched: str, transformers: Sequence[Prefixed]) -> None:
        """`resource` is for the metrics, `unmatched` what is said of a value that nobody knows."""
        self._resource = resource
        self._unmatched = unmatched
        self._transformers = transformers

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        started = time.perf_counter()
        errors: list[TransformError] = []
        for number, (prefix, transformer) in enumerate(self._transformers):
            if not data.startswith(prefix):
                continue
            try:
                plain, stale = await transformer.from_storage(data[len(prefix) :], context)
            except TransformError as error:
                if prefix:  # identity, which refuses what is encrypted, stands in nobody's way
                    transformed(self._resource, FROM_STORAGE, prefix.decode(), started, error.status)
                    errors.append(error)
                continue
            transformed(self._resource, FROM_STORAGE, prefix.decode() or "identity", started, OK)
            return Plain(plain, stale or number > 0)
        if errors:
            raise errors[0] if len(errors) == 1 else TransformError(_aggregate(errors), errors[0].status)
        transformed(self._resource, FROM_STORAGE, "unknown", started, NO_RPC)
        raise TransformError(self._unmatched)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        started = time.perf_counter()
        prefix, transformer = self._transformers[0]
        try:
            made = await transformer.to_storage(data, context)
        except TransformError as error:
            transformed(self._resource, TO_STORAGE, prefix.decode(), started, error.status)
            raise
        transformed(self._resource, TO_STORAGE, prefix.decode(), started, OK)
        return prefix + made


def _aggregate(errors: Sequence[TransformError]) -> str:
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
