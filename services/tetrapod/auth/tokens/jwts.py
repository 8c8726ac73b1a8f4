"""`JwtVerifier`: verification of the signature and the issuer of service account tokens.

The claims about Kubernetes objects are checked elsewhere. As in upstream, go-jose v2 decides which tokens are
well-formed, and its error texts are used. A key verifies only its own algorithms, regardless of the token's header;
`none` and symmetric algorithms are not among them. Verified tokens are cached by hash, so that a signature is verified
once. Expiry and the objects that a token names are checked on every use.

Upstream: pkg/serviceaccount/jwt.go, JWTTokenAuthenticator.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt

from tetrapod.auth.tokens.keys import KeySource, VerificationKey
from tetrapod.generic.authentication.interface import InvalidToken
from tetrapod.machinery.boundedcache import BoundedCache

_NOT_SIGNED: Final = "go-jose/go-jose: error in cryptographic primitive"
_NO_KEYS: Final = "invalid signature, no keys found"
_SPACE: Final = re.compile(r"[\t\n\f\r ]+")
_TEXTS_OF_HEADER: Final = ("alg", "kid", "nonce")
_PUBLIC_KINDS: Final = ("RSA", "EC", "OKP")
_TEXTS: Final = ("iss", "sub", "jti")
_MOMENTS: Final = ("exp", "nbf", "iat")


@dataclass(frozen=True, slots=True)
class _Compact:
    """The decoded parts of a token in JWS compact serialization.

    Attributes:
        protected: the JSON of the header, without base64url.
        payload: the JSON of the claims, without base64url.
        signature: the signature, without base64url.
        header: the parsed header; {} if it is empty.
    """

    protected: bytes
    payload: bytes
    signature: bytes
    header: Mapping[str, Any]

    @property
    def signed(self) -> bytes:
        """The bytes that the signature covers: header and payload, encoded canonically.

        The token may therefore contain white space and differ in unused trailing bits.
        """
        return _written(self.protected) + b"." + _written(self.payload)


class JwtVerifier:
    """A verifier of signatures, which caches the tokens that it has verified until a key changes."""

    def __init__(self, keys: KeySource) -> None:
        self._keys = keys
        self._verified: BoundedCache[bytes, Mapping[str, Any]] = BoundedCache(
            count=8192, size=16 << 20, largest=64 << 10
        )
        keys.listeners.append(self._verified.clear)
        self._salt = secrets.token_bytes(16)

    async def claims(self, token: str, issuers: Collection[str]) -> Mapping[str, Any] | None:
        """Verify a token and return its claims, which are cached and must not be modified.

        Args:
            token: the token.
            issuers: the accepted values of the claim `iss`.

        Returns:
            The claims, or None for tokens that are not JWTs and for those of other issuers.

        Raises:
            InvalidToken: the token names one of `issuers`, but none of the keys has signed it, or a registered claim
                has the wrong type.
        """
        digest = hashlib.blake2b(token.encode("utf-8", "surrogateescape"), key=self._salt, digest_size=32).digest()
        cached = self._verified.recall(digest)
        if cached is not None:
            return cached if cached.get("iss") in issuers else None
        claims = _claimed(token)
        if claims is None or not isinstance(claims.get("iss"), str) or claims["iss"] not in issuers:
            return None
        compact = _parsed(token)
        if compact is None:
            return None
        _verify(compact, await self._keys.find(compact.header.get("kid") or ""))
        _check(claims)
        return self._verified.keep(digest, claims)


def _verify(token: _Compact, keys: Sequence[VerificationKey]) -> None:
    if not keys:
        raise InvalidToken(_NO_KEYS)
    algorithm = token.header.get("alg")
    if token.header.get("crit") or not any(_signed_by(key, token, algorithm) for key in keys):
        raise InvalidToken(_NOT_SIGNED)


def _signed_by(key: VerificationKey, token: _Compact, algorithm: str | None) -> bool:
    if algorithm not in key.algorithms:
        return False
    verified: bool = jwt.get_algorithm_by_name(algorithm).verify(token.signed, key.key, token.signature)
    return verified


def _check(claims: Mapping[str, Any]) -> None:
    """Check the types of the registered claims (RFC 7519), as go-jose does when it decodes them.

    Raises:
        InvalidToken: a claim has another type.
    """
    for key in _TEXTS:
        text_of(claims, key)
    for key in _MOMENTS:
        number_of(claims, key)
    audience = claims.get("aud", [])
    if not isinstance(audience, str) and not (
        isinstance(audience, list) and all(isinstance(one, str) for one in audience)
    ):
        raise _malformed("aud")


def text_of(claims: Mapping[str, Any], key: str) -> str:
    """Return a string claim, or "" if it is missing or null.

    Raises:
        InvalidToken: it is not a string.
    """
    value = claims.get(key)
    if not isinstance(value, str | None):
        raise _malformed(key)
    return value or ""


def number_of(claims: Mapping[str, Any], key: str) -> float | None:
    """Return a numeric claim, or None if it is missing or null.

    Raises:
        InvalidToken: it is not a number.
    """
    value = claims.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _malformed(key)
    return value


def object_of(claims: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """Return an object claim, or None if it is missing or null.

    Raises:
        InvalidToken: it is not an object.
    """
    value = claims.get(key)
    if not isinstance(value, dict | None):
        raise _malformed(key)
    return value


def texts_of(claims: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a claim that is a list of strings; () if it is missing or null.

    Raises:
        InvalidToken: it is not a list of strings.
    """
    value = claims.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _malformed(key)
    return tuple(value)


def _malformed(key: str) -> InvalidToken:
    return InvalidToken(f"go-jose/go-jose/jwt: the claim {key} cannot be unmarshalled")


def _claimed(token: str) -> Mapping[str, Any] | None:
    """Return the claims of a token without verifying it, or None if its second part is not a JSON object."""
    parts = token.split(".")
    payload = _read(parts[1]) if len(parts) == 3 else None
    return None if payload is None else _object(payload)


def _parsed(token: str) -> _Compact | None:
    """Decode the three parts of a token; return None if go-jose would not parse it as a signed token."""
    protected, payload, signature = (_read(part) for part in _SPACE.sub("", token).split("."))
    if protected is None or payload is None or signature is None:
        return None
    header = _object(protected) if protected else {}
    if (
        header is None
        or not all(isinstance(header.get(key) or "", str) for key in _TEXTS_OF_HEADER)
        or not _may_embed(header.get("jwk"))
    ):
        return None
    return _Compact(protected, payload, signature, header)


def _may_embed(key: object) -> bool:
    """Return whether go-jose accepts this value of the header `jwk`: none or a public key.

    The key is not used for verification.
    """
    return key is None or (isinstance(key, dict) and key.get("kty") in _PUBLIC_KINDS and "d" not in key)


def _object(raw: bytes) -> Mapping[str, Any] | None:
    """Parse a JSON object; return None for other data.

    Literals that Go's decoder rejects (NaN, Infinity) are rejected, and so are duplicate names: another reader could
    take the other of the two values.
    """
    try:
        value = json.loads(raw.decode("utf-8", "replace"), object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    obj = dict(pairs)
    if len(obj) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return obj


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _read(text: str) -> bytes | None:
    """Decode base64url without padding, as Go does: line breaks are skipped. Return None for invalid input."""
    text = text.replace("\r", "").replace("\n", "")
    if not text.isascii() or any(letter in text for letter in "=+/"):
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None


def _written(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
