"""The signatures of certificate requests, with the texts of Go's CheckSignature for the same files."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from tetrapod.core.certificates.request_signatures import signature_error

UNIMPLEMENTED = "x509: cannot verify signature: algorithm unimplemented"
MINIMUM = "https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rsa-sha1", ""),
        ("ecdsa-sha1", ""),
        ("ed25519", ""),
        ("pss", ""),
        ("pss-salt-20", UNIMPLEMENTED),
        ("ed448", UNIMPLEMENTED),
        ("rsa-md5", "x509: cannot verify signature: insecure algorithm MD5-RSA"),
        ("rsa-512", f"crypto/rsa: 512-bit keys are insecure (see {MINIMUM})"),
        ("secp256k1", "x509: unsupported elliptic curve"),
        ("ecdsa-wrong", "x509: ECDSA verification failure"),
    ],
)
def test_the_signature_of_a_request_is_checked_with_the_algorithms_of_go(name: str, text: str) -> None:
    request = x509.load_pem_x509_csr((Path(__file__).parent / "requests" / f"{name}.csr").read_bytes())
    assert signature_error(request) == text
