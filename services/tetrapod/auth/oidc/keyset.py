"""`RemoteKeySet`: the cached key set of an issuer, and the verification of signatures by it.

The keys are fetched again when no cached key verifies a token and the cached ones have expired. A key verifies only the
asymmetric algorithms of its type that the authenticator allows. A public key is never used as a shared secret, and
`none` is rejected.

Upstream: go-oidc's jwks.go.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tetrapod.auth.oidc.claims import parse_object
from tetrapod.auth.oidc.fetching import Fetched, Fetcher, FetchError
from tetrapod.auth.tokens.keys import PublicKey
from tetrapod.machinery.failure import result_of
from tetrapod.machinery.golang.integers import decimal_number
from tetrapod.machinery.gvk import Object

log = logging.getLogger(__name__)

_EXPIRY_DELTA: Final = 30.0
"""Keys are fetched again this many seconds before they expire."""
_LONGEST_AGE: Final = (1 << 31) - 1
"""The longest time in seconds for which caching headers allow a key set to be cached."""
_BAD_SIGNATURE: Final = "failed to verify id token signature"
_TYPES: Final = {"RSA": ("RS", "PS"), "EC": ("ES",)}
_CURVES: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}


class BadSignature(Exception):
    """The error if no key of the issuer verifies a signature, or the keys cannot be fetched."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key of a JWKS.

    Attributes:
        id: `kid`, or "".
        type: `kty`: "RSA" or "EC".
        curve: `crv`, or "" for RSA.
        key: the key.
    """

    id: str
    type: str
    curve: str
    key: PublicKey

    def verifies(self, algorithm: str) -> bool:
        """Return whether the key's type and curve fit the algorithm, such as "RS256"."""
        if self.type == "EC":
            return _CURVES.get(self.curve) == algorithm
        return algorithm[:2] in _TYPES[self.type]


@dataclass(frozen=True, slots=True)
class _Known:
    keys: Sequence[Key] = ()
    expiry: float = field(default=float("-inf"))


ReportKeySet = Callable[[bytes | None], None]
"""Called after every fetch with the body, or with None if no valid key set was received."""


class RemoteKeySet:
    """The key set at one URL, cached as its response allows.

    Args:
        fetcher: fetches the keys.
        url: the JWKS URL.
        report: called after every fetch with the body, or with None if no valid key set was received.
        clock: returns seconds since the epoch, because the issuer's Cache-Control headers give the expiry.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        url: str,
        report: ReportKeySet = lambda _: None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._fetcher, self._url, self._report, self._clock = fetcher, url, report, clock
        self._known = _Known()
        self._fetching: asyncio.Task[_Known] | None = None

    async def verify(self, token: str, header: Mapping[str, Any]) -> None:
        """Verify the signature of a token.

        If no cached key verifies it and the cached keys have expired, they are fetched.

        Args:
            token: the token.
            header: its decoded header.

        Raises:
            BadSignature: no key verifies it, or the keys cannot be fetched.
        """
        if _verified(token, header, self._known.keys):
            return
        if self._clock() + _EXPIRY_DELTA <= self._known.expiry:
            raise BadSignature(_BAD_SIGNATURE)
        try:
            refreshed = await self._refresh()
        except FetchError as error:
            raise BadSignature(f"fetching keys {error}") from None
        if not _verified(token, header, refreshed.keys):
            raise BadSignature(_BAD_SIGNATURE)

    async def _refresh(self) -> _Known:
        """Fetch the keys and return them. Concurrent callers share one request.

        Raises:
            FetchError: the keys cannot be fetched or are malformed.
        """
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        return await result_of(self._fetching)

    def _fetched(self, task: asyncio.Task[_Known]) -> None:
        self._fetching = None
        if not task.cancelled() and task.exception() is None:
            self._known = task.result()

    async def _fetch(self) -> _Known:
        try:
            response = await self._fetcher.get(self._url)
        except FetchError as error:
            self._report(None)
            raise FetchError(f"oidc: get keys failed {error}") from None
        text = response.body.decode("utf-8", "replace")
        if response.status != 200:
            self._report(None)
            raise FetchError(f"oidc: get keys failed: {response.status} {text}")
        try:
            keys = parse_keys(response.body)
        except ValueError as error:
            self._report(None)
            raise FetchError(f"oidc: failed to decode keys: {error} {text}") from None
        self._report(response.body)
        return _Known(keys, cacheable_until(response, self._clock()))


def parse_keys(body: bytes) -> list[Key]:
    """Return the RSA and EC keys of a JWKS. Other keys, including shared secrets, and unusable ones are skipped.

    Raises:
        ValueError: the data is not a key set.
    """
    listed = parse_object(body).get("keys") or []
    if not isinstance(listed, list):
        raise ValueError("json: cannot unmarshal into Go struct field JSONWebKeySet.keys of type []jose.JSONWebKey")
    return [key for jwk in listed if isinstance(jwk, dict) and (key := _key(jwk)) is not None]


def _key(jwk: Object) -> Key | None:
    kind = jwk.get("kty")
    if not isinstance(kind, str) or kind not in _TYPES:
        return None
    # drop private members
    public = {name: value for name, value in jwk.items() if name in ("kty", "n", "e", "crv", "x", "y")}
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


def cacheable_until(response: Fetched, now: float) -> float:
    """Return until when a response may be cached, by the rules for shared caches (github.com/pquerna/cachecontrol).

    Args:
        response: the response, whose headers Cache-Control and Expires are used.
        now: seconds since the epoch.

    Returns:
        Seconds since the epoch; `now` if the response must not be cached or has no caching headers.
    """
    directives = _directives(response.headers.get("cache-control", ""))
    if directives.keys() & {"no-store", "no-cache", "private"}:
        return now
    for name in ("s-maxage", "max-age"):
        value = directives.get(name, "")
        if value.isascii() and value.isdecimal():
            return now + min(decimal_number(value), _LONGEST_AGE)
    moment = email.utils.parsedate_tz(response.headers.get("expires", ""))
    try:
        return max(now, float(email.utils.mktime_tz(moment))) if moment is not None else now
    except (ValueError, OverflowError):  # a year that does not exist
        return now


def _directives(header: str) -> dict[str, str]:
    """Return the directives of a Cache-Control header by their names in lower case. One without a value has ""."""
    pairs = (part.partition("=") for part in header.split(","))
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
