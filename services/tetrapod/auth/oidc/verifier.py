"""`TokenVerifier`: verifies that an ID token is signed by its issuer, for an expected audience, and currently valid.

Upstream: go-oidc's verify.go and oidc.go (discovery), idTokenVerifier of plugin/pkg/authenticator/token/oidc/oidc.go.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tetrapod.auth.oidc.claims import (
    BadClaim,
    parse_object,
    same_issuer,
    segment,
    shown_time,
    string_of,
)
from tetrapod.auth.oidc.fetching import Fetcher, FetchError
from tetrapod.auth.oidc.id_tokens import IdToken, decode_id_token
from tetrapod.auth.oidc.keyset import BadSignature, RemoteKeySet, ReportKeySet
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

WELL_KNOWN: Final = "/.well-known/openid-configuration"
_LEEWAY: Final = 60.0
"""Tolerated clock difference for `nbf`, in seconds. `exp` has no leeway, as in go-oidc."""


class BadToken(Exception):
    """The error for an ID token that is malformed, expired or from another issuer; the text is go-oidc's."""


@dataclass(frozen=True, slots=True)
class Expectations:
    """The values that the tokens of an authenticator must have.

    Attributes:
        audiences: the accepted audiences; a token must have at least one.
        algorithms: the accepted signing algorithms.
        clock: returns seconds since the epoch.
    """

    audiences: Sequence[str]
    algorithms: Sequence[str]
    clock: Callable[[], float] = time.time


class TokenVerifier:
    """The verifier of the ID tokens of one issuer.

    Args:
        issuer: the URL that the claim `iss` must have.
        keys: the issuer's keys.
        expected: the accepted audiences and algorithms, and the clock.
    """

    def __init__(self, issuer: str, keys: RemoteKeySet, expected: Expectations) -> None:
        self._issuer, self._keys, self._expected = issuer, keys, expected

    async def verify(self, token: str) -> Object:
        """Verify signature, issuer, audience and times of an ID token, and return its claims.

        Raises:
            BadToken: the token is malformed, its signature is invalid, or a claim has an unexpected value.
        """
        header, payload = _parts(token)
        algorithm = header.get("alg")
        if algorithm not in self._expected.algorithms:
            shown = go_quote(algorithm if isinstance(algorithm, str) else "")
            listed = _quoted(self._expected.algorithms)
            raise BadToken(f"oidc: id token signed with unsupported algorithm, expected {listed} got {shown}")
        try:
            await self._keys.verify(token, header)
        except BadSignature as error:
            raise BadToken(f"failed to verify signature: {error}") from None
        try:
            claims = parse_object(payload)
            self._check(claims)
        except (BadClaim, ValueError) as error:
            raise BadToken(f"oidc: failed to unmarshal claims: {error}") from None
        return claims

    def _check(self, claims: Object) -> None:
        token = decode_id_token(claims)
        _check_sources(token)
        issuer, audience = token.issuer, token.audience
        expiry, not_before = token.times.get("exp"), token.times.get("nbf")
        if not same_issuer(self._issuer, issuer):
            text = f"expected {go_quote(self._issuer)} got {go_quote(issuer)}"
            raise BadToken(f"oidc: id token issued by a different provider, {text}")
        wanted = self._expected.audiences
        if not set(wanted) & set(audience):
            shown = go_quote(wanted[0]) if len(wanted) == 1 else f"in {_quoted(sorted(wanted))}"
            raise BadToken(f"oidc: expected audience {shown} got {_quoted(audience)}")
        now = self._expected.clock()
        if expiry is None or expiry < now:
            raise BadToken(f"oidc: token is expired (Token Expiry: {shown_time(expiry)})")
        if not_before is not None and now + _LEEWAY < not_before:
            raise BadToken(
                f"oidc: current time {shown_time(now)} before the nbf (not before) time: {shown_time(not_before)}"
            )


def _parts(token: str) -> tuple[Object, bytes]:
    """Return the header and the encoded claims of a token without verifying them.

    Raises:
        BadToken: the token is malformed.
    """
    parts = token.split(".")
    if len(parts) > 3:
        raise BadToken("oidc: malformed jwt")
    if len(parts) != 3:
        raise BadToken("oidc: malformed jwt: square/go-jose: compact JWS format must have three parts")
    try:
        header, payload = parse_object(segment(parts[0])), segment(parts[1])
        segment(parts[2])
    except ValueError as error:
        raise BadToken(f"oidc: malformed jwt: {error}") from None
    if header.get("crit"):  # no critical header extension is supported
        raise BadToken("failed to verify signature: failed to verify id token signature")
    if not isinstance(header.get("kid"), str | None):
        raise BadToken("oidc: malformed jwt: the key's id is no string")
    return header, payload


def _check_sources(token: IdToken) -> None:
    """Check that every distributed claim (`_claim_names`) has a source (`_claim_sources`).

    Raises:
        BadToken: a source is missing.
    """
    for source in token.claim_names.values():
        if not source:
            raise BadToken("oidc: failed to obtain source from claim name")
        if source not in token.claim_sources:
            raise BadToken("oidc: source does not exist")


async def discover(
    issuer: str, fetcher: Fetcher, expected: Expectations, report: ReportKeySet = lambda _: None
) -> TokenVerifier:
    """Fetch the discovery document of an issuer and return the verifier of its tokens.

    The keys are fetched later, with the first token.

    Args:
        issuer: the URL of the issuer.
        fetcher: sends the requests.
        expected: the audiences and algorithms that the tokens must have.
        report: called after each fetch of the keys with the body, or with None if no valid key set was received.

    Raises:
        FetchError: the document cannot be fetched, names another issuer, or has no JWKS URL.
    """
    response = await fetcher.get(issuer.removesuffix("/") + WELL_KNOWN)
    text = response.body.decode("utf-8", "replace")
    if response.status != 200:
        raise FetchError(f"{response.status}: {text}")
    try:
        provider: Any = parse_object(response.body)
        returned_issuer, keys = string_of(provider.get("issuer")), string_of(provider.get("jwks_uri"))
    except (BadClaim, ValueError, json.JSONDecodeError) as error:
        raise FetchError(f"oidc: failed to decode provider discovery object: {error}") from None
    if returned_issuer != issuer:
        text = f"expected {go_quote(issuer)} got {go_quote(returned_issuer)}"
        raise FetchError(f"oidc: issuer did not match the issuer returned by provider, {text}")
    if not keys:
        raise FetchError("provider did not return JWKS URL")
    return TokenVerifier(issuer, RemoteKeySet(fetcher, keys, report, clock=expected.clock), expected)


def _quoted(texts: Sequence[str]) -> str:
    return "[" + " ".join(map(go_quote, texts)) + "]"
