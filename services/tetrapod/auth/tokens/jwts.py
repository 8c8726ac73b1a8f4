"""Signature and issuer of a service account token, without looking at what it says about Kubernetes.

Follows JWTTokenAuthenticator of pkg/serviceaccount/jwt.go. A key verifies with its own algorithms only, whatever the token's
header asks for; `none` and shared secrets are not among them. Verified tokens are remembered by hash: the expensive half of
the work is done once, while expiry and the objects behind a token are looked at every time.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import jwt

from tetrapod.auth.tokens.keys import VerificationKey
from tetrapod.generic.authentication.interface import InvalidToken

_REMEMBERED: Final = 8192
_UNCHECKED: Final = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
"""Claims that change their meaning with time and audience: checked by whoever asks, not here."""
_OPTIONS: Final[Any] = {"verify_signature": True, **{f"verify_{claim}": False for claim in _UNCHECKED}}
_WITHOUT_SIGNATURE: Final[Any] = {**_OPTIONS, "verify_signature": False}


class JwtVerifier:
    def __init__(self, keys: Sequence[VerificationKey]) -> None:
        self._keys = tuple(keys)
        self._by_id = {key.id: key for key in keys}
        self._verified: dict[bytes, Mapping[str, Any]] = {}
        self._salt = secrets.token_bytes(16)

    def claims(self, token: str, issuers: Collection[str]) -> Mapping[str, Any] | None:
        """The claims of a token signed by one of our keys; None for tokens of other issuers.

        Raises:
            InvalidToken: it names our issuer, but none of our keys has signed it.
        """
        digest = hashlib.blake2b(token.encode("utf-8", "surrogateescape"), key=self._salt, digest_size=32).digest()
        known = self._verified.get(digest)
        if known is not None:
            return known if known.get("iss") in issuers else None
        header, issuer = _unverified(token)
        if issuer not in issuers:
            return None
        claims = self._verify(token, header)
        if len(self._verified) >= _REMEMBERED:
            del self._verified[next(iter(self._verified))]
        self._verified[digest] = claims
        return claims

    def _verify(self, token: str, header: Mapping[str, Any]) -> Mapping[str, Any]:
        named = self._by_id.get(header["kid"]) if isinstance(header.get("kid"), str) else None
        for key in [named] if named is not None else self._keys:
            if header.get("alg") not in key.algorithms:
                continue
            try:
                claims: Mapping[str, Any] = jwt.decode(token, key.key, algorithms=list(key.algorithms), options=_OPTIONS)
            except jwt.InvalidTokenError:
                continue
            return claims
        raise InvalidToken("invalid signature")


def _unverified(token: str) -> tuple[Mapping[str, Any], object]:
    """Header and issuer as the token claims them; no issuer where it is no JWT at all."""
    if token.count(".") != 2:
        return {}, None
    try:
        parsed = jwt.decode_complete(token, options=_WITHOUT_SIGNATURE)
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        return {}, None
    return parsed["header"], parsed["payload"].get("iss")
