"""Signature and issuer of a service account token, without looking at what it says about Kubernetes.

Follows JWTTokenAuthenticator of pkg/serviceaccount/jwt.go and, for what counts as a token and how a bad one is called, go-jose v2. A key
verifies with its own algorithms only, whatever the token's header asks for; `none` and shared secrets are not among them. Verified
tokens are remembered by hash: the expensive half of the work is done once, while expiry and the objects behind a token are looked at
every time.
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

from tetrapod.auth.tokens.keys import VerificationKey
from tetrapod.generic.authentication.interface import InvalidToken

_REMEMBERED: Final = 8192
_NOT_SIGNED: Final = "go-jose/go-jose: error in cryptographic primitive"
_NO_KEYS: Final = "invalid signature, no keys found"
_SPACE: Final = re.compile(r"[\t\n\f\r ]+")
_TEXTS_OF_HEADER: Final = ("alg", "kid", "nonce")
_PUBLIC_KINDS: Final = ("RSA", "EC", "OKP")
_TEXTS: Final = ("iss", "sub", "jti")
_MOMENTS: Final = ("exp", "nbf", "iat")


@dataclass(frozen=True, slots=True)
class _Compact:
    """The three parts of a token, decoded."""

    protected: bytes
    payload: bytes
    signature: bytes
    header: Mapping[str, Any]

    @property
    def signed(self) -> bytes:
        """What the signature is of: the parts as they should be written, so that spaces and spare bits are no matter."""
        return _written(self.protected) + b"." + _written(self.payload)


class JwtVerifier:
    def __init__(self, keys: Sequence[VerificationKey]) -> None:
        self._keys = tuple(keys)
        self._by_id = {key.id: key for key in keys}
        self._verified: dict[bytes, Mapping[str, Any]] = {}
        self._salt = secrets.token_bytes(16)

    def claims(self, token: str, issuers: Collection[str]) -> Mapping[str, Any] | None:
        """The claims of a token signed by one of our keys; None for what is no token, and for tokens of other issuers.

        Raises:
            InvalidToken: it names our issuer, but none of our keys has signed it, or a claim is of another type than it must be.
        """
        digest = hashlib.blake2b(token.encode("utf-8", "surrogateescape"), key=self._salt, digest_size=32).digest()
        known = self._verified.get(digest)
        if known is not None:
            return known if known.get("iss") in issuers else None
        claims = _claimed(token)
        if claims is None or not isinstance(claims.get("iss"), str) or claims["iss"] not in issuers:
            return None
        compact = _parsed(token)
        if compact is None:
            return None
        self._verify(compact)
        _check(claims)
        if len(self._verified) >= _REMEMBERED:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = claims
        return claims

    def _verify(self, token: _Compact) -> None:
        key_id = token.header.get("kid")
        keys: Sequence[VerificationKey | None] = [self._by_id.get(key_id)] if key_id else self._keys
        candidates = [key for key in keys if key is not None]
        if not candidates:
            raise InvalidToken(_NO_KEYS)
        algorithm = token.header.get("alg")
        if token.header.get("crit") or not any(_signed_by(key, token, algorithm) for key in candidates):
            raise InvalidToken(_NOT_SIGNED)


def _signed_by(key: VerificationKey, token: _Compact, algorithm: str | None) -> bool:
    if algorithm not in key.algorithms:
        return False
    verified: bool = jwt.get_algorithm_by_name(algorithm).verify(token.signed, key.key, token.signature)
    return verified


def _check(claims: Mapping[str, Any]) -> None:
    """As go-jose reads registered claims into Go's types. Raises InvalidToken."""
    for key in _TEXTS:
        text_of(claims, key)
    for key in _MOMENTS:
        number_of(claims, key)
    audience = claims.get("aud", [])
    if not isinstance(audience, str) and not (isinstance(audience, list) and all(isinstance(one, str) for one in audience)):
        raise _malformed("aud")


def text_of(claims: Mapping[str, Any], key: str) -> str:
    """ "" where there is none. Raises InvalidToken where it is no text."""
    found = claims.get(key)
    if not isinstance(found, str | None):
        raise _malformed(key)
    return found or ""


def number_of(claims: Mapping[str, Any], key: str) -> float | None:
    """Raises InvalidToken where it is no number."""
    found = claims.get(key)
    if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise _malformed(key)
    return found


def object_of(claims: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """Raises InvalidToken where it is no object."""
    found = claims.get(key)
    if not isinstance(found, dict | None):
        raise _malformed(key)
    return found


def _malformed(key: str) -> InvalidToken:
    return InvalidToken(f"go-jose/go-jose/jwt: the claim {key} cannot be unmarshalled")


def _claimed(token: str) -> Mapping[str, Any] | None:
    """What an unverified token says; None where it is no JWT at all."""
    parts = token.split(".")
    payload = _read(parts[1]) if len(parts) == 3 else None
    return None if payload is None else _object(payload)


def _parsed(token: str) -> _Compact | None:
    """None for what go-jose would not take for a signed token."""
    protected, payload, signature = (_read(part) for part in _SPACE.sub("", token).split("."))
    if protected is None or payload is None or signature is None:
        return None
    header = _object(protected) if protected else {}
    if header is None or not all(isinstance(header.get(key) or "", str) for key in _TEXTS_OF_HEADER) or not _may_embed(header.get("jwk")):
        return None
    return _Compact(protected, payload, signature, header)


def _may_embed(key: object) -> bool:
    """Whether a header may carry this key, which nobody uses: a public one."""
    return key is None or (isinstance(key, dict) and key.get("kty") in _PUBLIC_KINDS and "d" not in key)


def _object(raw: bytes) -> Mapping[str, Any] | None:
    """UTF-8, without what is no JSON to Go, and no name twice: who reads the other of two would read another token."""
    try:
        found = json.loads(raw.decode("utf-8", "replace"), object_pairs_hook=_distinct, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _read(text: str) -> bytes | None:
    """Raw URL encoding as Go reads it: no padding, no other letters; line ends are skipped. None where it is none."""
    text = text.replace("\r", "").replace("\n", "")
    if not text.isascii() or any(letter in text for letter in "=+/"):
        return None
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None


def _written(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
