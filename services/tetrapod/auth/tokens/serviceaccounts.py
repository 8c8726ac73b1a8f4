"""Authenticates service account tokens: bound ones by what they are bound to, legacy ones by their secret.

Follows pkg/serviceaccount/{jwt.go,claims.go,legacy.go}; the texts are what a TokenReview shows. Objects are looked at on
every use, so a token dies with its pod, secret, node or account at once and not after a cache's time.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from tetrapod.auth.rbac.covers import quoted
from tetrapod.auth.tokens import metrics
from tetrapod.auth.tokens.issuer import LEGACY_ISSUER
from tetrapod.auth.tokens.jwts import JwtVerifier
from tetrapod.auth.tokens.objects import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Objects
from tetrapod.generic.authentication.interface import Authenticated, InvalidToken
from tetrapod.generic.authentication.serviceaccount import (
    CREDENTIAL_ID_KEY,
    NODE_NAME_KEY,
    NODE_UID_KEY,
    POD_NAME_KEY,
    POD_UID_KEY,
    make_group_names,
    make_username,
)
from tetrapod.generic.authentication.user import UserInfo
from tetrapod.generic.storage.interface import StorageConfig
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import parse

LEEWAY: Final = 60.0
"""Clocks may differ by this much; what is being deleted stays valid as long."""
_INVALIDATED: Final = "service account token has been invalidated"
INVALID_SINCE_LABEL: Final = "kubernetes.io/legacy-token-invalid-since"

Claims = Mapping[str, Any]


def accepted_audiences(token: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Those wanted that the token is for.

    Raises:
        InvalidToken: none.
    """
    both = tuple(audience for audience in token if audience in wanted)
    if not both:
        raise InvalidToken(f"token audiences {quoted(token)} is invalid for the target audiences {quoted(wanted)}")
    return both


class BoundTokenAuthenticator:
    """Tokens of the TokenRequest API. `issuers` are all of --service-account-issuer, `audiences` of --api-audiences."""

    def __init__(
        self,
        verifier: JwtVerifier,
        objects: Objects,
        issuers: Sequence[str],
        audiences: Sequence[str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._verifier, self._objects = verifier, objects
        self._issuers, self._audiences = frozenset(issuers), tuple(audiences)
        self._clock = clock

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        claims = self._verifier.claims(token, self._issuers)
        if claims is None:
            return None
        accepted = accepted_audiences(_audiences_of(claims) or self._audiences, audiences or self._audiences)
        if not _audiences_of(claims):
            metrics.LEGACY.add()
        now = self._clock()
        user = await _BoundToken(claims, self._objects, now).user()
        warn_after = claims["kubernetes.io"].get("warnafter")
        if isinstance(warn_after, int | float) and warn_after:  # the client is expected to ask for a new one at that time
            (metrics.STALE if now > warn_after else metrics.VALID).add()
        return Authenticated(user, accepted)


class _BoundToken:
    """One token's claims, checked against the objects that they name."""

    def __init__(self, claims: Claims, objects: Objects, now: float) -> None:
        self._claims, self._objects, self._now = claims, objects, now
        about = claims.get("kubernetes.io")
        self._about: Claims = about if isinstance(about, dict) else {}
        self._namespace = str(self._about.get("namespace") or "")

    async def user(self) -> UserInfo:
        self._check_times()
        name, uid = self._reference("serviceaccount") or ("", "")
        await self._check_account(name, uid)
        extra = self._credential_id()
        secret, pod, node = self._reference("secret"), self._reference("pod"), self._reference("node")
        if secret is not None:
            await self._check_bound(SECRETS, "secret", secret)
        if pod is not None:
            await self._check_bound(PODS, "pod", pod)
            extra |= {POD_NAME_KEY: (pod[0],), POD_UID_KEY: (pod[1],)}
        elif node is not None:
            await self._check_bound(NODES, "node", node)
        if node is not None:
            extra[NODE_NAME_KEY] = (node[0],)
            if node[1]:
                extra[NODE_UID_KEY] = (node[1],)
        return UserInfo(make_username(self._namespace, name), uid, make_group_names(self._namespace), extra)

    def _check_times(self) -> None:
        expiry, not_before = self._claims.get("exp"), self._claims.get("nbf")
        if not isinstance(expiry, int | float) or self._now - LEEWAY > expiry:
            raise InvalidToken("service account token has expired")
        if isinstance(not_before, int | float) and self._now + LEEWAY < not_before:
            raise InvalidToken("service account token is not valid yet")

    def _credential_id(self) -> dict[str, tuple[str, ...]]:
        token_id = self._claims.get("jti")
        return {CREDENTIAL_ID_KEY: (f"JTI={token_id}",)} if isinstance(token_id, str) and token_id else {}

    def _reference(self, key: str) -> tuple[str, str] | None:
        """Name and uid of what a claim names; None where it names nothing."""
        ref = self._about.get(key)
        return (str(ref.get("name") or ""), str(ref.get("uid") or "")) if isinstance(ref, dict) else None

    async def _check_account(self, name: str, uid: str) -> None:
        account = await self._objects.find(SERVICE_ACCOUNTS, self._namespace, name, uid)
        if account is None:
            raise InvalidToken(f"serviceaccounts {go_quote(name)} not found")
        if self._deleted(account):
            raise InvalidToken(f"service account {self._namespace}/{name} has been deleted")
        if (actual := account["metadata"].get("uid", "")) != uid:
            raise InvalidToken(f"service account UID ({actual}) does not match claim ({uid})")

    async def _check_bound(self, config: StorageConfig, kind: str, ref: tuple[str, str]) -> None:
        name, uid = ref
        bound = await self._objects.find(config, self._namespace, name, uid)
        if bound is None or self._deleted(bound):
            raise InvalidToken(_INVALIDATED)
        if (actual := bound["metadata"].get("uid", "")) != uid:
            title = kind if kind in ("pod", "node") else kind.capitalize()
            raise InvalidToken(f"{title} UID ({actual}) does not match service account {kind} ref claim ({uid})")

    def _deleted(self, obj: Object) -> bool:
        moment = obj["metadata"].get("deletionTimestamp")
        return bool(moment) and parse(moment).timestamp() < self._now - LEEWAY


class LegacyTokenAuthenticator:
    """Tokens in secrets. `used` is told the namespace and name of a secret whose token was good."""

    def __init__(
        self, verifier: JwtVerifier, objects: Objects, audiences: Sequence[str], used: Callable[[Object], Awaitable[None]] | None = None
    ) -> None:
        self._verifier, self._objects, self._audiences = verifier, objects, tuple(audiences)
        self._used = used

    async def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> Authenticated | None:
        claims = self._verifier.claims(token, (LEGACY_ISSUER,))
        if claims is None:
            return None
        if not _audiences_of(claims):
            metrics.LEGACY.add()
        accepted = accepted_audiences(_audiences_of(claims) or self._audiences, audiences or self._audiences)
        namespace, secret_name, name, uid = (_legacy_claim(claims, key) for key in _LEGACY_CLAIMS)
        if claims.get("sub") != make_username(namespace, name):
            raise InvalidToken("sub claim is invalid")
        secret = await self._secret(namespace, secret_name, name, token)
        account = await self._check_account(namespace, name, uid)
        automatic = any(ref.get("name") == secret_name for ref in account.get("secrets") or ())
        (metrics.AUTOMATIC if automatic else metrics.MANUAL).add()
        if self._used is not None:
            await self._used(secret)
        return Authenticated(UserInfo(make_username(namespace, name), uid, make_group_names(namespace)), accepted)

    async def _secret(self, namespace: str, secret_name: str, account: str, token: str) -> Object:
        secret = await self._objects.find(SECRETS, namespace, secret_name)
        if secret is None or secret["metadata"].get("deletionTimestamp"):
            raise InvalidToken("Token has been invalidated")
        if not hmac.compare_digest(secret_value(secret, "token"), token.encode("utf-8", "surrogateescape")):
            raise InvalidToken("Token does not match server's copy")
        if (secret["metadata"].get("labels") or {}).get(INVALID_SINCE_LABEL):
            metrics.INVALIDATED.add()
            raise InvalidToken(
                f"the token in secret {namespace}/{secret_name} for service account {namespace}/{account} has been marked invalid. "
                "Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
                f"'{INVALID_SINCE_LABEL}' label from the secret to temporarily allow use of this token"
            )
        return secret

    async def _check_account(self, namespace: str, name: str, uid: str) -> Object:
        account = await self._objects.find(SERVICE_ACCOUNTS, namespace, name, uid)
        if account is None:
            raise InvalidToken(f"serviceaccounts {go_quote(name)} not found")
        if account["metadata"].get("deletionTimestamp"):
            raise InvalidToken(f"ServiceAccount {namespace}/{name} has been deleted")
        if (actual := account["metadata"].get("uid", "")) != uid:
            raise InvalidToken(f"ServiceAccount UID ({actual}) does not match claim ({uid})")
        return account


_LEGACY_CLAIMS: Final = ("namespace", "secret.name", "service-account.name", "service-account.uid")


def _legacy_claim(claims: Claims, key: str) -> str:
    value = claims.get(f"kubernetes.io/serviceaccount/{key}")
    if not isinstance(value, str) or not value:
        raise InvalidToken(f"{key} claim is missing")
    return value


def _audiences_of(claims: Claims) -> tuple[str, ...]:
    audiences = claims.get("aud")
    if isinstance(audiences, str):
        return (audiences,)
    return tuple(a for a in audiences if isinstance(a, str)) if isinstance(audiences, list) else ()


def secret_value(secret: Object, key: str) -> bytes:
    """One value of a stored secret; b"" where it is missing or not what it should be."""
    try:
        return b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except (BadBase64, ValueError):
        return b""
