"""The keys of an issuer, fetched when a token is signed by one that is not known; and the check of signatures.

Upstream: go-oidc's jwks.go. A key verifies only asymmetric algorithms of its own type that the authenticator allows: a public key is
never taken for a shared secret, and `none` is no algorithm.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tetrapod.auth.oidc.claims import parse_object
from tetrapod.auth.oidc.fetching import Fetched, Fetcher, FetchError
from tetrapod.auth.tokens.keys import PublicKey
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

_EXPIRY_DELTA: Final = 30.0
"""Keys are asked for anew this much before they expire."""
_BAD_SIGNATURE: Final = "failed to verify id token signature"
_TYPES: Final = {"RSA": ("RS", "PS"), "EC": ("ES",)}
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
_DIRECTIVE: Final = re.compile(r'\s*([A-Za-z-]+)\s*(?:=\s*"?([^",]*)"?)?\s*(?:,|$)')


class BadSignature(Exception):
    """Signed by none of the issuer's keys, or they cannot be had."""


@dataclass(frozen=True, slots=True)
class Key:
    id: str
    type: str
    curve: str
    key: PublicKey

    def verifies(self, algorithm: str) -> bool:
        if self.type == "EC":
            return _CURVES.get(self.curve) == algorithm
        return algorithm[:2] in _TYPES[self.type]


@dataclass(frozen=True, slots=True)
class _Known:
    keys: Sequence[Key] = ()
    expiry: float = field(default=float("-inf"))


Told = Callable[[bytes | None], None]
"""Is told of every fetch: what came, or None where it was no key set."""


class RemoteKeySet:
    """`clock` is wall time: an issuer says until when its keys are good."""

    def __init__(self, fetcher: Fetcher, url: str, told: Told = lambda _: None, *, clock: Callable[[], float] = time.time) -> None:
        self._fetcher, self._url, self._told, self._clock = fetcher, url, told, clock
        self._known = _Known()
        self._fetching: asyncio.Task[_Known] | None = None

    async def verify(self, token: str, header: Mapping[str, Any]) -> None:
        """
        Raises:
            BadSignature
        """
        if _verified(token, header, self._known.keys):
            return
        if self._clock() + _EXPIRY_DELTA <= self._known.expiry:
            raise BadSignature(_BAD_SIGNATURE)
        try:
            known = await self._refresh()
        except FetchError as error:
            raise BadSignature(f"fetching keys {error}") from None
        if not _verified(token, header, known.keys):
            raise BadSignature(_BAD_SIGNATURE)

    async def _refresh(self) -> _Known:
        """One request at a time, for all who wait."""
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        return await asyncio.shield(self._fetching)

    def _fetched(self, task: asyncio.Task[_Known]) -> None:
        self._fetching = None
        if not task.cancelled() and task.exception() is None:
            self._known = task.result()

    async def _fetch(self) -> _Known:
        try:
            found = await self._fetcher.get(self._url)
        except FetchError as error:
            self._told(None)
            raise FetchError(f"oidc: get keys failed {error}") from None
        text = found.body.decode("utf-8", "replace")
        if found.status != 200:
            self._told(None)
            raise FetchError(f"oidc: get keys failed: {found.status} {text}")
        try:
            keys = parse_keys(found.body)
        except ValueError as error:
            self._told(None)
            raise FetchError(f"oidc: failed to decode keys: {error} {text}") from None
        self._told(found.body)
        return _Known(keys, expires(found, self._clock()))


def parse_keys(body: bytes) -> list[Key]:
    """Public keys of a JWKS; what is not RSA or EC (a shared secret among them) is passed over.

    Raises:
        ValueError: not a key set.
    """
    listed = parse_object(body).get("keys") or []
    if not isinstance(listed, list):
        raise ValueError("json: cannot unmarshal into Go struct field JSONWebKeySet.keys of type []jose.JSONWebKey")
    return [key for jwk in listed if isinstance(jwk, dict) and (key := _key(jwk)) is not None]


def _key(jwk: Object) -> Key | None:
    kind = jwk.get("kty")
    if kind not in _TYPES:
        return None
    public = {name: value for name, value in jwk.items() if name in ("kty", "n", "e", "crv", "x", "y")}  # no private half
    try:
        key: Any = (RSAAlgorithm if kind == "RSA" else ECAlgorithm).from_jwk(public)
    except (jwt.InvalidKeyError, ValueError, TypeError, KeyError) as error:
        log.warning("a key of an issuer cannot be used: %s", error)
        return None
    return Key(str(jwk.get("kid") or ""), kind, str(jwk.get("crv") or ""), key)


def _verified(token: str, header: Mapping[str, Any], keys: Sequence[Key]) -> bool:
    algorithm, key_id = header["alg"], header.get("kid") or ""
    for key in keys:
        if (key_id and key.id != key_id) or not key.verifies(algorithm):
            continue
        try:
            jwt.PyJWS().decode_complete(token, key.key, algorithms=[algorithm])
        except (jwt.InvalidTokenError, ValueError, TypeError):
            continue
        return True
    return False


def expires(answer: Fetched, now: float) -> float:
    """Until when an answer may be kept, as a shared cache reads it (github.com/pquerna/cachecontrol); now where it says nothing."""
    directives = {name.lower(): value for name, value in _DIRECTIVE.findall(answer.headers.get("cache-control", ""))}
    if directives.keys() & {"no-store", "no-cache", "private"}:
        return now
    for name in ("s-maxage", "max-age"):
        if directives.get(name, "").isdigit():
            return now + int(directives[name])
    moment = email.utils.parsedate_tz(answer.headers.get("expires", ""))
    return max(now, float(email.utils.mktime_tz(moment))) if moment is not None else now
