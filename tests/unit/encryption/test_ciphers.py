"""Tests of the ciphers: they read values of upstream and their own, and reject others with upstream's messages.

The vectors were made by k8s.io/apiserver v0.37.1, with 32 bytes of 7 as key and seed.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.generic.storage.encryption.ciphers import AesCbc, AesGcm, Secretbox, SeededGcm
from tetrapod.generic.storage.encryption.kms.objects import decoded
from tetrapod.generic.storage.encryption.transformer import (
    Identity,
    Prefixed,
    PrefixTransformer,
    Transformer,
    TransformError,
)

KEY = bytes([7]) * 32
CONTEXT = b"/registry/secrets/default/s1"
PLAIN = b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s1"}}\n'
UPSTREAM = {
    AesCbc: (
        "zKp8i0S6IVzygo2q3KEn2z3lNjarOX9LEM8GH8Kvw+jPW+woMCaHlxLyGdzNOvrDdHbpSFm/Q977rQM9VN2/uag/7jLFJfONhVz1V/nZHMM="
    ),
    AesGcm: (
        "lzCwk/4pLZ4U5BNjY9aS9JwMY2HCnqy9pajVQE1X/gmb4DGMHLHDzUj0pNLBOYe7VpLY2s8m2FWuCHaOgFjpG+/"
        "gT8nkm4oZn5afFcUh9avofYGDYaK/3HU="
    ),
    Secretbox: (
        "3oZUPtFifQzIwhKcggcIZ2du9VtXuf7VB7TLhlGi91gEMLQ6rAsMA13vNW/UJmfJbJZ8BIT6jeC6SPlW2fagw9cXft/"
        "OjebJpj03KZjDbFaIFnOAYNRBQCMFFCMv0zij0JoHkm0="
    ),
    SeededGcm: (
        "73eEMdJ1v8ZIbBppXcfiIq/MdMq51hnjagun9EQuymu+k+FAruVFIaqcvAXu0fOXRR5UjuZr0mG/"
        "m0+YxXRA55DUAGJahlyaB39Xs+6r47OUdsl5IgmzZY34a8ud/4groqJGv/xrH4fZJlwfNT+1oi7ut9CDyWRDnA=="
    ),
}
ENVELOPE = (
    "Cnnvd4Qx0nW/xkhsGmldx+Iir8x0yrnWGeNqC6f0RC7Ka76T4UCu5UUhqpy8Be7R85dFHlSO5mvSYb+bT5jFdEDnkNQAYlqGXJoHf1ez7qvjs5R2y"
    "XkiCbNljfhry53/iCuioka//Gsfh9kmXB81P7WiLu630IPJZEOcEgJrMRoGc2VhbGVkIhIKDWEuZXhhbXBsZS5jb20SATEoAQ=="
)
every_cipher = pytest.mark.parametrize("cipher", list(UPSTREAM), ids=lambda cipher: cipher.__name__)


@every_cipher
async def test_values_encrypted_by_upstream_are_decrypted(cipher: Callable[[bytes], Transformer]) -> None:
    assert await cipher(KEY).from_storage(b64decode(UPSTREAM[cipher]), CONTEXT) == (PLAIN, False)  # type: ignore[index]


async def test_an_envelope_of_upstream_is_read() -> None:
    found = decoded(b64decode(ENVELOPE))
    assert (found.keyID, found.encryptedDEKSource, dict(found.annotations)) == (
        "k1",
        b"sealed",
        {"a.example.com": b"1"},
    )
    assert (await SeededGcm(KEY).from_storage(found.encryptedData, CONTEXT)).data == PLAIN


@every_cipher
@given(data=st.binary(max_size=200))
async def test_encrypted_values_are_decrypted_again(cipher: Callable[[bytes], Transformer], data: bytes) -> None:
    made = cipher(KEY)
    stored = await made.to_storage(data, CONTEXT)
    assert data not in stored or len(data) < 4
    assert await cipher(KEY).from_storage(stored, CONTEXT) == (data, False)
    assert await made.to_storage(data, CONTEXT) != stored


@every_cipher
@given(data=st.binary(max_size=100))
async def test_garbage_is_rejected_without_an_exception(cipher: Callable[[bytes], Transformer], data: bytes) -> None:
    try:
        await cipher(KEY).from_storage(data, CONTEXT)
    except TransformError:
        return
    assert cipher is AesCbc  # CBC cannot detect it: one value in 256 looks correctly padded


@pytest.mark.parametrize("cipher", [AesGcm, SeededGcm])
async def test_a_value_moved_to_another_key_is_rejected(cipher: Callable[[bytes], Transformer]) -> None:
    """An attacker with write access to etcd cannot pass one secret off as another."""
    stored = await cipher(KEY).to_storage(PLAIN, CONTEXT)
    with pytest.raises(TransformError, match="cipher: message authentication failed"):
        await cipher(KEY).from_storage(stored, b"/registry/secrets/default/s2")


@every_cipher
async def test_a_value_is_not_decrypted_by_another_key(cipher: Callable[[bytes], Transformer]) -> None:
    stored = await cipher(KEY).to_storage(PLAIN, CONTEXT)
    texts = "cipher: message authentication failed|padd|output array was not large enough for encryption"
    with pytest.raises(TransformError, match=texts):
        await cipher(bytes(32)).from_storage(stored, CONTEXT)


def chain(*transformers: tuple[str, Transformer]) -> PrefixTransformer:
    return PrefixTransformer(
        "secrets", "no match", [Prefixed(prefix.encode(), transformer) for prefix, transformer in transformers]
    )


async def test_the_first_key_encrypts_and_values_of_other_keys_are_stale() -> None:
    old, new = chain(("1:", AesGcm(KEY))), chain(("2:", AesGcm(bytes(32))), ("1:", AesGcm(KEY)))
    stored = await old.to_storage(PLAIN, CONTEXT)
    assert stored.startswith(b"1:")
    assert await old.from_storage(stored, CONTEXT) == (PLAIN, False)
    assert await new.from_storage(stored, CONTEXT) == (PLAIN, True)
    assert (await new.to_storage(PLAIN, CONTEXT)).startswith(b"2:")


async def test_a_key_whose_name_was_used_before_is_tried_too() -> None:
    stored = await chain(("1:", AesGcm(KEY))).to_storage(PLAIN, CONTEXT)
    assert await chain(("1:", AesGcm(bytes(32))), ("1:", AesGcm(KEY))).from_storage(stored, CONTEXT) == (PLAIN, True)


async def test_identity_first_reads_what_is_encrypted_with_the_next() -> None:
    decrypting = chain(("", Identity()), ("k8s:enc:1:", AesGcm(KEY)))
    stored = await chain(("k8s:enc:1:", AesGcm(KEY))).to_storage(PLAIN, CONTEXT)
    assert await decrypting.from_storage(stored, CONTEXT) == (PLAIN, True)
    assert await decrypting.to_storage(PLAIN, CONTEXT) == PLAIN


async def test_identity_rejects_encrypted_values() -> None:
    with pytest.raises(TransformError, match="identity transformer tried to read encrypted data"):
        await Identity().from_storage(b"k8s:enc:whatever", CONTEXT)
    with pytest.raises(TransformError, match="no match"):
        await chain(("", Identity())).from_storage(b"k8s:enc:whatever", CONTEXT)
