"""Tests of the cache of an external signer's keys: its listeners are called when a key changes under the same ID."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tetrapod.auth.tokens.external import external_pb2 as pb
from tetrapod.auth.tokens.external.client import SignerClient
from tetrapod.auth.tokens.external.key_cache import KeyCache


def new_key() -> bytes:
    return (
        ec.generate_private_key(ec.SECP256R1())
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


async def test_listeners_are_called_only_when_a_key_changes() -> None:
    key = new_key()

    async def fetch_keys(timeout: float) -> Any:
        response = pb.FetchKeysResponse(keys=[pb.Key(key_id="a", key=key)], refresh_hint_seconds=60)
        response.data_timestamp.seconds = 1
        return response

    cache = KeyCache(cast("SignerClient", SimpleNamespace(fetch_keys=fetch_keys)))
    calls: list[int] = []
    cache.listeners.append(lambda: calls.append(1))
    await cache.sync()
    await cache.sync()
    assert len(calls) == 1
    key = new_key()
    await cache.sync()
    assert len(calls) == 2
