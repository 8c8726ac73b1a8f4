"""`TokenIssuer`: signs bound service account tokens and the tokens of legacy secrets.

Upstream: pkg/serviceaccount/{jwt.go,claims.go,legacy.go}.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

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
    """The object that a token is bound to: a pod, a Secret or a node, or none. Deleting it makes the token invalid.

    Attributes:
        pod: the pod.
        secret: the Secret.
        node: the name and uid of the node. With a pod, it is the node on which the pod is scheduled, if any. The token
            is not bound to that node and stays valid without it. The uid is then "" if the Node does not exist.
    """

    pod: Object | None = None
    secret: Object | None = None
    node: Mapping[str, str] | None = None


class TokenIssuer:
    """The signer of service account tokens.

    Args:
        issuer: the claim `iss`: the first value of --service-account-issuer.
        key: the private key.
        clock: returns seconds since the epoch.
    """

    def __init__(self, issuer: str, key: PrivateKey, *, clock: Callable[[], float] = time.time) -> None:
        self.issuer = issuer
        self._key = key
        self._public = verification_key(key.public_key())
        self._clock = clock

    def bound_token(
        self, account: Object, seconds: int, audiences: Sequence[str], bound: Bound, warn_after: int = 0
    ) -> str:
        """Return a signed token for a service account, bound to it and to the objects in `bound`.

        Args:
            account: the ServiceAccount.
            seconds: the lifetime.
            audiences: the `aud` claim.
            bound: the pod, Secret or node that the token is bound to, if any.
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
        private_claims["serviceaccount"] = _reference(account)
        if warn_after:
            private_claims["warnafter"] = now + warn_after
        return self._sign(
            {
                "aud": list(audiences),
                "exp": now + seconds,
                "iat": now,
                "iss": self.issuer,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": private_claims,
                "nbf": now,
                "sub": make_username(meta["namespace"], meta["name"]),
            }
        )

    def legacy_token(self, account: Object, secret_name: str) -> str:
        """Return a signed token that does not expire, for a Secret of type kubernetes.io/service-account-token.

        Args:
            account: the ServiceAccount.
            secret_name: the name of the Secret, in the account's namespace.
        """
        meta = account["metadata"]
        prefix = "kubernetes.io/serviceaccount"
        return self._sign(
            {
                "iss": LEGACY_ISSUER,
                f"{prefix}/namespace": meta["namespace"],
                f"{prefix}/secret.name": secret_name,
                f"{prefix}/service-account.name": meta["name"],
                f"{prefix}/service-account.uid": meta["uid"],
                "sub": make_username(meta["namespace"], meta["name"]),
            }
        )

    def _sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode(claims, self._key, self._public.algorithm, {"kid": self._public.id, "typ": ""})


def _reference(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}
