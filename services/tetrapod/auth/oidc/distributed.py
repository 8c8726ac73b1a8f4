"""`ClaimResolver`: distributed claims, groups that a token does not contain but for which it names an endpoint.

The endpoint must return a JWT that its own issuer has signed for the same audiences.

Upstream: plugin/pkg/authenticator/token/oidc/oidc.go, claimResolver (OpenID Connect Core 1.0, section 5.6.2).
"""

from __future__ import annotations

from tetrapod.auth.oidc.claims import BadClaim, string_of, type_mismatch, untrusted_issuer
from tetrapod.auth.oidc.fetching import Fetcher, FetchError
from tetrapod.auth.oidc.verifier import BadToken, Expectations, TokenVerifier, discover
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object


class ClaimResolver:
    """The resolver of one distributed claim for the tokens of one authenticator.

    The keys of an endpoint's issuer are fetched when its first token arrives.

    Args:
        claim: the name of the claim.
        fetcher: sends the requests.
        expected: the audiences and algorithms of the endpoint's tokens.
    """

    def __init__(self, claim: str, fetcher: Fetcher, expected: Expectations) -> None:
        self._claim, self._fetcher, self._expected = claim, fetcher, expected
        self._verifiers: dict[str, TokenVerifier] = {}

    async def expand(self, claims: Object) -> None:
        """Fetch the claim and store it in `claims`, if the token names an endpoint for it. Otherwise do nothing.

        Raises:
            BadToken: the claim cannot be fetched or its token is invalid.
        """
        if self._claim in claims or "_claim_names" not in claims:
            return
        names = _object(claims["_claim_names"], "oidc: error parsing distributed claim names")
        if "_claim_sources" not in claims:
            raise BadToken("oidc: no claim sources")
        sources = _object(claims["_claim_sources"], "oidc: could not parse claim sources")
        source = names.get(self._claim)
        if not isinstance(source, str):
            return
        if source not in sources:
            raise BadToken(f"id token _claim_names contained a source {source} missing in _claims_sources")
        place = _object(sources[source], "oidc: could not parse claim sources")
        try:
            endpoint, bearer = string_of(place.get("endpoint")), string_of(place.get("access_token"))
        except BadClaim as error:
            raise BadToken(f"oidc: could not parse claim sources: {error}") from None
        if endpoint:  # without an endpoint it may be an aggregated claim, which is not supported
            claims[self._claim] = await self._resolve(endpoint, bearer)

    async def _resolve(self, endpoint: str, bearer: str) -> object:
        try:
            response = await self._fetcher.get(endpoint, bearer)
        except FetchError as error:
            raise BadToken(f"while getting distributed claim {go_quote(self._claim)}: {error}") from None
        if not 200 <= response.status <= 226:
            text = f"error while getting distributed claim JWT: {response.status}"
            raise BadToken(f"while getting distributed claim {go_quote(self._claim)}: {text}")
        token = response.body.decode("utf-8", "replace")
        issuer = untrusted_issuer(token)
        if issuer is None:
            raise BadToken(
                f"getting untrusted issuer from endpoint {endpoint} failed for claim {go_quote(self._claim)}: "
                "malformed token"
            )
        try:
            claims = await (await self._verifier(issuer)).verify(token)
        except BadToken as error:
            raise BadToken(f"verify distributed claim token: {error}") from None
        if self._claim not in claims:
            raise BadToken(
                f"jwt returned by distributed claim endpoint {go_quote(endpoint)} did not contain claim: {self._claim}"
            )
        value: object = claims[self._claim]
        return value

    async def _verifier(self, issuer: str) -> TokenVerifier:
        verifier = self._verifiers.get(issuer)
        if verifier is None:
            try:
                verifier = self._verifiers[issuer] = await discover(issuer, self._fetcher, self._expected)
            except FetchError as error:
                text = f"verifier not initialized for issuer: {go_quote(issuer)}: {error}"
                raise BadToken(f"verifying untrusted issuer {issuer} failed: {text}") from None
        return verifier


def _object(value: object, prefix: str) -> Object:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadToken(f"{prefix}: {type_mismatch(value, 'value of type map[string]string')}")
    return value
