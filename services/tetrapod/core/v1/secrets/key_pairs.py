"""The check that a certificate and a private key match.

The error texts are those of Go's tls.X509KeyPair (crypto/tls/tls.go).
"""

from __future__ import annotations

from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key

from tetrapod.machinery.golang import x509_errors
from tetrapod.machinery.golang.pem import Block, blocks

_SKIPPED: Final = "after skipping PEM blocks of the following types:"
_NO_KEY: Final = "tls: failed to parse private key"
_LONGEST_RSA: Final = 16_384
"""Bits of the longest modulus with which OpenSSL computes (OPENSSL_RSA_MAX_MODULUS_BITS)."""
_KINDS: Final = (RSAPublicKey, EllipticCurvePublicKey, Ed25519PublicKey)


def key_pair_error(certificate: bytes, key: bytes) -> str:
    """Return Go's error text if the PEM-encoded certificate and key cannot be parsed or do not match, else "".

    The first certificate of a chain is compared.
    """
    pem_blocks = blocks(certificate)
    chain = [block for block in pem_blocks if block.type == "CERTIFICATE"]
    if not chain:
        return _no_certificate([block.type for block in pem_blocks])
    pem_blocks = blocks(key)
    private_key = next(
        (block for block in pem_blocks if block.type == "PRIVATE KEY" or block.type.endswith(" PRIVATE KEY")), None
    )
    return _no_key([block.type for block in pem_blocks]) if private_key is None else _mismatch(chain[0], private_key)


def _no_certificate(types: list[str]) -> str:
    if not types:
        return "tls: failed to find any PEM data in certificate input"
    if len(types) == 1 and types[0].endswith("PRIVATE KEY"):
        switched = "PEM inputs may have been switched"
        return f"tls: failed to find certificate PEM data in certificate input, but did find a private key; {switched}"
    return f'tls: failed to find "CERTIFICATE" PEM block in certificate input {_SKIPPED} [{" ".join(types)}]'


def _no_key(types: list[str]) -> str:
    if not types:
        return "tls: failed to find any PEM data in key input"
    if types == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        f'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input {_SKIPPED} [{" ".join(types)}]'
    )


def _mismatch(certificate: Block, key: Block) -> str:
    try:
        public = x509.load_der_x509_certificate(certificate.content).public_key()
    except (ValueError, x509.InvalidVersion):
        return x509_errors.certificate_error(certificate.content)
    try:
        private = load_der_private_key(key.content, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError):
        return _NO_KEY
    if isinstance(private, RSAPrivateKey) and not _is_consistent(private):
        return _NO_KEY
    key_public = private.public_key()
    key_class = next((key_class for key_class in _KINDS if isinstance(public, key_class)), None)
    if key_class is None:
        return "tls: unknown public key algorithm"
    if not isinstance(key_public, key_class):
        return "tls: private key type does not match public key type"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return (
        ""
        if public.public_bytes(*form) == key_public.public_bytes(*form)
        else "tls: private key does not match public key"
    )


def _is_consistent(key: RSAPrivateKey) -> bool:
    """Return whether the numbers of an RSA key belong together, as far as Go checks it: not whether p and q are prime.

    OpenSSL tests that too, in one call that keeps all other threads from running: 3 s for 8,192 bits, minutes for more.

    Upstream: Go's crypto/internal/fips140/rsa/rsa.go, checkPrivateKey.
    """
    if key.key_size > _LONGEST_RSA:
        return False
    numbers = key.private_numbers()
    p, q, d, e = numbers.p, numbers.q, numbers.d, numbers.public_numbers.e
    parts = (p, q, d, e, numbers.dmp1, numbers.dmq1, numbers.iqmp)
    if min(p, q) < 3 or max(part.bit_length() for part in parts) > _LONGEST_RSA:
        return False
    return (
        p * q == numbers.public_numbers.n
        and numbers.iqmp * q % p == 1
        and all(
            part * e % (prime - 1) == 1 and d % (prime - 1) == part
            for prime, part in ((p, numbers.dmp1), (q, numbers.dmq1))
        )
    )
