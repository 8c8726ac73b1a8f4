"""The keys that sign and verify service account tokens: parsing of PEM files, key ids, and JSON Web Keys.

The id of a key is the hash of its public half, so a token names the key that verifies it. Only the auth service holds
private keys.

Upstream: pkg/serviceaccount/{jwt.go,openidmetadata.go}.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509 import load_pem_x509_certificate

PublicKey: TypeAlias = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_PEM_BLOCK: Final = re.compile(rb"-----BEGIN [^-]+-----.+?-----END [^-]+-----", re.DOTALL)
_CURVES: Final = {
    "secp256r1": ("ES256", "P-256", 32),
    "secp384r1": ("ES384", "P-384", 48),
    "secp521r1": ("ES512", "P-521", 66),
}


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key for tokens.

    Attributes:
        id: the hash of the key, or the name that a plugin gives it; tokens name it as `kid`.
        algorithms: the only algorithms that it verifies; the header of a token cannot choose another one.
        published: whether OIDC discovery shows the key.
    """

    id: str
    key: PublicKey
    algorithms: tuple[str, ...]
    published: bool = True

    @property
    def algorithm(self) -> str:
        """The first algorithm, with which this server signs."""
        return self.algorithms[0]

    def jwk(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key (RFC 7517)."""
        if isinstance(self.key, rsa.RSAPublicKey):
            numbers = self.key.public_numbers()
            shape = {"n": _b64_number(numbers.n), "e": _b64_number(numbers.e)}
            return {"use": "sig", "kty": "RSA", "kid": self.id, "alg": self.algorithm, **shape}
        algorithm, curve, size = _CURVES[self.key.curve.name]
        point = self.key.public_numbers()
        shape = {"x": _b64_number(point.x, size), "y": _b64_number(point.y, size)}
        return {"use": "sig", "kty": "EC", "kid": self.id, "crv": curve, "alg": algorithm, **shape}


class KeySource(Protocol):
    """The keys that verify tokens.

    Attributes:
        listeners: functions without arguments, which are called after the keys have changed.
    """

    listeners: list[Callable[[], None]]

    @property
    def keys(self) -> Sequence[VerificationKey]:
        """All current keys."""
        ...

    @property
    def max_age(self) -> int:
        """For how many seconds readers may cache the keys."""
        ...

    async def find(self, key_id: str) -> Sequence[VerificationKey]:
        """Return the keys with this ID, or () if no key has it. For "" return all keys."""
        ...


class StaticKeys:
    """Keys that do not change; a `KeySource`."""

    max_age = 3600

    def __init__(self, keys: Sequence[VerificationKey]) -> None:
        self.keys = tuple(keys)
        self.listeners: list[Callable[[], None]] = []
        self._by_id = {key.id: key for key in keys}

    async def find(self, key_id: str) -> Sequence[VerificationKey]:
        """Return a tuple of the only key with this ID, or () if no key has it. For "" return all keys."""
        if not key_id:
            return self.keys
        key = self._by_id.get(key_id)
        return () if key is None else (key,)


def verification_key(key: PublicKey, key_id: str = "", *, published: bool = True) -> VerificationKey:
    """Return a public key with its id and its algorithms.

    Args:
        key: the key.
        key_id: its id; "" for its hash.
        published: whether OIDC discovery shows the key.

    Raises:
        ValueError: the key has an elliptic curve that JWTs do not support.
    """
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    key_id = key_id or _b64(hashlib.sha256(der).digest())
    if isinstance(key, rsa.RSAPublicKey):
        return VerificationKey(key_id, key, ("RS256", "RS384", "RS512"), published)
    if key.curve.name not in _CURVES:
        raise ValueError(f"unknown curve {key.curve.name}, must be 256, 384, or 521")
    return VerificationKey(key_id, key, (_CURVES[key.curve.name][0],), published)


def load_signing_key(pem: bytes) -> PrivateKey:
    """Return the first usable private key in the content of --service-account-signing-key-file.

    Other PEM blocks and encrypted keys are skipped.

    Raises:
        ValueError: no block is a usable RSA or ECDSA private key; the text is upstream's.
    """
    for block in _PEM_BLOCK.findall(pem):
        if b"PRIVATE KEY" in block and (key := _private_key(block)) is not None:
            return key
    raise ValueError("data does not contain a valid RSA or ECDSA private key")


def load_verification_keys(pem: bytes) -> list[VerificationKey]:
    """Return every key in the content of --service-account-key-file, in order.

    These are public keys, those of certificates, and the public halves of private keys. Other PEM blocks are skipped.

    Raises:
        ValueError: no block contains a usable key, or a key has an elliptic curve that JWTs do not support.
    """
    keys = [verification_key(key) for block in _PEM_BLOCK.findall(pem) if (key := _public_key(block)) is not None]
    if not keys:
        raise ValueError("data does not contain any valid RSA or ECDSA public keys")
    return keys


def _private_key(block: bytes) -> PrivateKey | None:
    try:
        key = serialization.load_pem_private_key(block, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # malformed or encrypted
        return None
    return key if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) else None


def _public_key(block: bytes) -> PublicKey | None:
    if b"PRIVATE KEY" in block:
        private = _private_key(block)
        return None if private is None else private.public_key()
    try:
        if b"CERTIFICATE" in block:
            key: object = load_pem_x509_certificate(block).public_key()
        elif b"PUBLIC KEY" in block:
            key = serialization.load_pem_public_key(block)
        else:
            return None
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) else None


def distinct(keys: Iterable[VerificationKey]) -> list[VerificationKey]:
    """Return the keys in order, one for each id: the last one, in the place of the first."""
    return list({key.id: key for key in keys}.values())


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _b64_number(number: int, size: int = 0) -> str:
    return _b64(number.to_bytes(size or (number.bit_length() + 7) // 8, "big"))
