"""`JwtAuthenticator`: authenticates users by the ID tokens of one issuer.

Its error texts are upstream's, because a TokenReview shows them.

Upstream: k8s.io/apiserver/plugin/pkg/authenticator/token/oidc/oidc.go, jwtAuthenticator.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from tetrapod.auth.oidc import metrics
from tetrapod.auth.oidc.claims import BadClaim, bool_claim, string_claim, strings_claim, untrusted_issuer
from tetrapod.auth.oidc.configuration import ALL_ALGORITHMS
from tetrapod.auth.oidc.distributed import ClaimResolver
from tetrapod.auth.oidc.expressions import (
    CLAIMS,
    USER,
    Expression,
    ExpressionError,
    check_rules,
    claims_value,
    string_list,
    user_value,
)
from tetrapod.auth.oidc.fetching import Fetcher, FetchError
from tetrapod.auth.oidc.validation import compile_authenticator
from tetrapod.auth.oidc.verifier import WELL_KNOWN, BadToken, Expectations, TokenVerifier, discover
from tetrapod.generic.authentication.interface import Authenticated, InvalidToken
from tetrapod.generic.authentication.serviceaccount import CREDENTIAL_ID_KEY
from tetrapod.generic.configuration.server_identity import label_hash
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.scheduling.offload import offloaded_if_slow
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.user import UserInfo

log = logging.getLogger(__name__)

_FIRST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 10.0


class JwtAuthenticator:
    """The authenticator for one entry of `jwt` in an AuthenticationConfiguration.

    `run` fetches the issuer's discovery document in the background, because the issuer may be a workload of this
    cluster. Until then, tokens of the issuer are rejected.

    Args:
        config: the entry of `jwt`.
        pool: sends requests to the issuer.
        egress: the pools to use instead of `pool`, by the value of the issuer's `egressSelectorType`; None without an
            egress selector.
        algorithms: the accepted signing algorithms.
        disallowed: issuer URLs that the entry must not have.
        clock: returns seconds since the epoch.

    Raises:
        ValueError: the entry is invalid; the text is upstream's.
    """

    def __init__(
        self,
        config: Object,
        pool: BackendPool,
        *,
        egress: Mapping[str, BackendPool] | None = None,
        algorithms: Sequence[str] = ALL_ALGORITHMS,
        disallowed: Collection[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._mapper = compile_authenticator(config, disallowed)
        for algorithm in algorithms:
            if algorithm not in ALL_ALGORITHMS:
                raise ValueError(f"oidc: unsupported signing alg: {go_quote(algorithm)}")
        issuer = config["issuer"]
        if egress_type := issuer.get("egressSelectorType"):
            if egress is None:
                raise ValueError(f"oidc: egress lookup required with egress selector type {go_quote(egress_type)}")
            if egress_type not in egress:
                raise ValueError(f"oidc: egress lookup for {go_quote(egress_type)} is not configured")
            pool = egress[egress_type]
        self.issuer: str = issuer["url"]
        self._mappings: Object = config.get("claimMappings") or {}
        self._required = {
            r["claim"]: r.get("requiredValue") or "" for r in config.get("claimValidationRules") or [] if r.get("claim")
        }
        rewrites = {self.issuer.removesuffix("/") + WELL_KNOWN: url} if (url := issuer.get("discoveryURL")) else {}
        self._fetcher = Fetcher(pool, issuer.get("certificateAuthority") or "", rewrites)
        self._expected = Expectations(tuple(issuer["audiences"]), tuple(algorithms), clock)
        groups = (self._mappings.get("groups") or {}).get("claim")
        self._resolver = ClaimResolver(groups, self._fetcher, self._expected) if groups else None
        self._verifier: TokenVerifier | None = None
        self._unhealthy = f"oidc: authenticator for issuer {go_quote(self.issuer)} is not initialized"
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Fetch the issuer's discovery document, with exponential backoff, then set `ready` and return."""
        wait = _FIRST_WAIT
        while self._verifier is None:
            try:
                self._verifier = await discover(
                    self.issuer, self._fetcher, self._expected, lambda body: metrics.fetched(self.issuer, body)
                )
            except FetchError as error:
                log.error("oidc authenticator: initializing plugin: %s", error)
                self._unhealthy = str(error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
        self.ready.set()

    def discovery_error(self) -> str:
        """Return why tokens cannot be verified yet, or "" if the discovery document has been fetched."""
        if self._verifier is not None:
            return ""
        return f"oidc: authenticator for issuer {go_quote(self.issuer)} is not healthy: {self._unhealthy}"

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        if untrusted_issuer(token) != self.issuer:
            return None
        start = time.perf_counter()
        result = "failure"
        try:
            user = await self._user(token)
            result = "success"
        finally:
            metrics.LATENCY.observe((result, label_hash(self.issuer)), time.perf_counter() - start)
        return Authenticated(user)

    async def _user(self, token: str) -> UserInfo:
        if self._verifier is None:
            raise InvalidToken("oidc: authenticator not initialized")
        try:
            claims = await self._verifier.verify(token)
        except BadToken as error:
            raise InvalidToken(f"oidc: verify token: {error}") from None
        if self._resolver is not None:
            try:
                await self._resolver.expand(claims)
            except BadToken as error:
                raise InvalidToken(f"oidc: could not expand distributed claims: {error}") from None
        return await offloaded_if_slow(partial(self._mapped, claims))

    def _mapped(self, claims: Object) -> UserInfo:
        """Return the user for the claims of a verified token.

        Args:
            claims: the claims.

        Raises:
            InvalidToken: the claims give no user, or a validation rule rejects them.
            TakesTooLong: the evaluation would take too long for the event loop.
        """
        value = claims_value(claims)

        def evaluate(expression: Expression) -> Any:
            return expression.evaluate(CLAIMS, value)

        user = UserInfo(
            self._username(claims, evaluate), groups=self._groups(claims, evaluate), uid=self._uid(claims, evaluate),
            extra=self._extra(claims, evaluate),
        )  # fmt: skip
        self._check_required(claims)
        self._check_rules(self._mapper.claim_rules, evaluate, "claim validation expression")
        user_info = user_value(user)
        self._check_rules(
            self._mapper.user_rules, lambda rule: rule.evaluate(USER, user_info), "user info validation rule"
        )
        return user

    def _username(self, claims: Object, evaluate: Callable[[Expression], Any]) -> str:
        if self._mapper.username is not None:
            name = _string(self._mapper.username, evaluate, "username")
            if not name:
                raise InvalidToken("oidc: empty username via CEL expression is not allowed")
            return name
        mapping = self._mappings["username"]
        claim = mapping["claim"]
        try:
            name = string_claim(claims, claim)
        except BadClaim as error:
            raise InvalidToken(f"oidc: parse username claims {go_quote(claim)}: {error}") from None
        if claim == "email" and "email_verified" in claims:
            try:
                verified = bool_claim(claims, "email_verified")
            except BadClaim as error:
                raise InvalidToken(f"oidc: parse 'email_verified' claim: {error}") from None
            if not verified:
                raise InvalidToken("oidc: email not verified")
        return (mapping.get("prefix") or "") + name

    def _groups(self, claims: Object, evaluate: Callable[[Expression], Any]) -> tuple[str, ...]:
        mapping = self._mappings.get("groups") or {}
        claim = mapping.get("claim")
        if claim and claim in claims:
            try:
                groups = strings_claim(claims, claim)
            except BadClaim as error:
                raise InvalidToken(f"oidc: parse groups claim {go_quote(claim)}: {error}") from None
            prefix = mapping.get("prefix") or ""
            return tuple(prefix + group for group in groups)
        if self._mapper.groups is None:
            return ()
        try:
            return string_list(evaluate(self._mapper.groups))
        except ExpressionError as error:
            raise InvalidToken(f"oidc: error evaluating group claim expression: {error}") from None

    def _uid(self, claims: Object, evaluate: Callable[[Expression], Any]) -> str:
        claim = (self._mappings.get("uid") or {}).get("claim")
        if claim:
            try:
                return string_claim(claims, claim)
            except BadClaim as error:
                raise InvalidToken(f"oidc: parse uid claim {go_quote(claim)}: {error}") from None
        return _string(self._mapper.uid, evaluate, "uid") if self._mapper.uid is not None else ""

    def _extra(self, claims: Object, evaluate: Callable[[Expression], Any]) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        token_id = claims.get("jti")
        if isinstance(token_id, str) and token_id:
            extra[CREDENTIAL_ID_KEY] = (f"JTI={token_id}",)
        try:
            evaluated = [(mapping, evaluate(mapping)) for mapping in self._mapper.extra]
        except ExpressionError as error:
            raise InvalidToken(str(error)) from None
        for mapping, value in evaluated:
            try:
                texts = string_list(value)
            except ExpressionError as error:
                raise InvalidToken(f"oidc: error evaluating extra claim expression: {mapping.text}: {error}") from None
            if texts:
                extra[mapping.about] = texts
        return extra

    def _check_required(self, claims: Object) -> None:
        for claim, wanted in self._required.items():
            if claim not in claims:
                raise InvalidToken(f"oidc: required claim {claim} not present in ID token")
            try:
                value = string_claim(claims, claim)
            except BadClaim as error:
                raise InvalidToken(f"oidc: parse claim {claim}: {error}") from None
            if value != wanted:
                raise InvalidToken(f"oidc: required claim {claim} value does not match. Got = {value}, want = {wanted}")

    def _check_rules(self, rules: tuple[Expression, ...], evaluate: Callable[[Expression], Any], subject: str) -> None:
        try:
            check_rules(rules, evaluate)
        except ExpressionError as error:
            raise InvalidToken(f"oidc: error evaluating {subject}: {error}") from None


def _string(expression: Expression, evaluate: Callable[[Expression], Any], mapping: str) -> str:
    """Evaluate an expression that must return a string, and return the string.

    Args:
        expression: the expression.
        evaluate: returns the value of an expression for the token's claims, raising ExpressionError.
        mapping: the mapping, for errors, such as "username".

    Raises:
        InvalidToken: the evaluation fails or returns another type.
    """
    prefix = f"oidc: error evaluating {mapping} claim expression"
    try:
        value = evaluate(expression)
    except ExpressionError as error:
        raise InvalidToken(f"{prefix}: {error}") from None
    if not isinstance(value, str):
        raise InvalidToken(f"{prefix}: {mapping} claim expression must return a string")
    return value
