"""The keys of TLS Secrets are compared with their certificates as in Go, which does not test factors for primality."""

from __future__ import annotations

import base64
import random
from datetime import UTC, datetime, timedelta
from math import gcd, lcm

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from tetrapod.core.v1.secrets.key_pairs import key_pair_error

_E = 65537
_NO_KEY = "tls: failed to parse private key"


def _factor(seed: int, bits: int) -> int:
    """Return a composite odd number that can be a factor of an RSA modulus otherwise."""
    source = random.Random(seed)
    while True:
        factor = (source.getrandbits(bits // 2) | 1 << bits // 2 - 1 | 1) * (
            source.getrandbits(bits // 2) | 1 << bits // 2 - 1 | 1
        )
        if gcd(_E, factor - 1) == 1:
            return factor


def _pair(bits: int, **changed: int) -> tuple[bytes, bytes]:
    """Return a certificate and a key as PEM. `changed` replaces numbers of the key."""
    p = _factor(1, bits // 2)
    q = next(q for seed in range(2, 100) if gcd(p, q := _factor(seed, bits // 2)) == 1)
    d = pow(_E, -1, lcm(p - 1, q - 1))
    numbers = {"n": p * q, "e": _E, "d": d, "p": p, "q": q, "dp": d % (p - 1), "dq": d % (q - 1), "qi": pow(q, -1, p)}
    public = rsa.RSAPublicNumbers(_E, p * q)
    key = _element(0x30, b"".join(map(_integer, (0, *{**numbers, **changed}.values()))))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a")])
    certificate = (
        x509.CertificateBuilder(name, name, public.public_key(), 1)
        .not_valid_before(datetime.now(UTC))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .sign(ed25519.Ed25519PrivateKey.generate(), None)
    )
    pem = b"-----BEGIN RSA PRIVATE KEY-----\n" + base64.encodebytes(key) + b"-----END RSA PRIVATE KEY-----\n"
    return certificate.public_bytes(Encoding.PEM), pem


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = size.to_bytes((size.bit_length() + 7) // 8 or 1)
    return bytes([tag, *([0x80 | len(length)] if size > 127 else []), *length]) + content


def _integer(number: int) -> bytes:
    return _element(2, number.to_bytes(number.bit_length() // 8 + 1))


@pytest.mark.parametrize("bits", [2048, 16_384])
def test_factors_of_an_rsa_key_are_not_tested_for_primality(bits: int) -> None:
    assert key_pair_error(*_pair(bits)) == ""


@pytest.mark.parametrize("number", ["p", "q", "d", "dp", "dq", "qi"])
def test_an_rsa_key_whose_numbers_do_not_belong_together_is_rejected(number: str) -> None:
    assert key_pair_error(*_pair(2048, **{number: 12_347})) == _NO_KEY


def test_an_rsa_key_beyond_the_longest_modulus_is_rejected() -> None:
    assert key_pair_error(*_pair(16_640)) == _NO_KEY
