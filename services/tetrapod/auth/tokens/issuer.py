"""The claims and the signatures of bound service account tokens and of the tokens of legacy secrets.

Upstream: pkg/serviceaccount/{jwt.go,claims.go,legacy.go}.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import jwt

from tetrapod.auth.tokens.keys import PrivateKey, verification_key
from tetrapod.generic.authentication.serviceaccount import make_username
from tetrapod.machinery.gvk import Object

LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
WARN_ONLY_SECONDS: Final = 60 * 60 + 7
"""The lifetime that the kubelet requests. Upstream extends such tokens and warns after this time
(WarnOnlyBoundTokenExpirationPeriod).
"""
EXTENDED_SECONDS: Final = 365 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Bound:
    """The object that a token is bound to, or none. Deleting it makes the token invalid.

    Attributes:
        pod: the pod.
        secret: the Secret.
        node: the name and uid of the node. With a pod, it is the node on which the pod is scheduled, if any. The token
            is not bound to that node and stays valid without it. The uid is then "" if the Node does not exist.
        webhooks: the ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
        attestations: the attestations of a token that is bound to `webhooks`; empty for others.
    """

    pod: Object | None = None
    secret: Object | None = None
    node: Mapping[str, str] | None = None
    webhooks: Object | None = None
    attestations: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Signer(Protocol):
    """A signer of tokens."""

    async def sign(self, claims: Mapping[str, Any]) -> str:
        """Return the token with these claims. Raises StatusError if it cannot be signed."""
        ...


class KeySigner:
    """The signer of tokens with a private key of this server, without a plugin.

    Args:
        key: the private key. The tokens name the ID of its public key.
    """

    def __init__(self, key: PrivateKey) -> None:
        self._key = key
        self._public = verification_key(key.public_key())

    async def sign(self, claims: Mapping[str, Any]) -> str:
        """Return the signed token with these claims, as text. It always succeeds."""
        return self.signed(claims)

    def signed(self, claims: Mapping[str, Any]) -> str:
        """Return the signed token with these claims, as text; the form of `sign` without await."""
        return jwt.encode(dict(claims), self._key, self._public.algorithm, {"kid": self._public.id, "typ": ""})


class TokenIssuer:
    """The maker of the claims of service account tokens.

    Args:
        issuer: the claim `iss`: the first value of --service-account-issuer.
        clock: returns seconds since the epoch.
    """

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.time) -> None:
        self.issuer = issuer
        self._clock = clock

    def bound_claims(
        self, account: Object, seconds: int, audiences: Sequence[str], bound: Bound, warn_after: int = 0
    ) -> dict[str, Any]:
        """Return the claims of a token for a service account, bound to it and to the objects in `bound`.

        Args:
            account: the ServiceAccount.
            seconds: the lifetime.
            audiences: the `aud` claim.
            bound: the object that the token is bound to, if any.
            warn_after: seconds until uses of the token are counted as stale; 0 for never.
        """
        now = int(self._clock())
        meta = account["metadata"]
        private_claims: dict[str, Any] = {"namespace": meta["namespace"]}
        if bound.node is not None:
            private_claims["node"] = {key: bound.node[key] for key in ("name", "uid") if bound.node.get(key)}
        if bound.pod is not None:
            private_claims["pod"] = _reference(bound.pod)
        if bound.secret is not None:
            private_claims["secret"] = _reference(bound.secret)
        if bound.webhooks is not None:
            private_claims[str(bound.webhooks["kind"]).lower()] = _reference(bound.webhooks)
        if bound.attestations:
            private_claims["attestations"] = bound.attestations
        private_claims["serviceaccount"] = _reference(account)
        if warn_after:
            private_claims["warnafter"] = now + warn_after
        return {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private_claims,
            "nbf": now,
            "sub": make_username(meta["namespace"], meta["name"]),
        }


def legacy_claims(account: Object, secret_name: str) -> dict[str, Any]:
    """Return the claims of a token that does not expire, for a Secret of type kubernetes.io/service-account-token.

    Args:
        account: the ServiceAccount.
        secret_name: the name of the Secret, in the account's namespace.
    """
    meta = account["metadata"]
    prefix = "kubernetes.io/serviceaccount"
    return {
        "iss": LEGACY_ISSUER,
        f"{prefix}/namespace": meta["namespace"],
        f"{prefix}/secret.name": secret_name,
        f"{prefix}/service-account.name": meta["name"],
        f"{prefix}/service-account.uid": meta["uid"],
        "sub": make_username(meta["namespace"], meta["name"]),
    }


def _reference(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}
