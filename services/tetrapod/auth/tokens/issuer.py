"""`TokenIssuer`: signs service account tokens, bound ones and those of legacy secrets.

Follows pkg/serviceaccount/{jwt.go,claims.go,legacy.go}.
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
"""The kubelet asks for this time to say that a token may live on, being warned about."""
EXTENDED_SECONDS: Final = 365 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Bound:
    """What a token dies with. `node` is a name and a uid, the latter "" where the node is not known."""

    pod: Object | None = None
    secret: Object | None = None
    node: Mapping[str, str] | None = None


class TokenIssuer:
    def __init__(self, issuer: str, key: PrivateKey, *, clock: Callable[[], float] = time.time) -> None:
        self.issuer = issuer
        self._key = key
        self._public = verification_key(key.public_key())
        self._clock = clock

    def bound_token(self, account: Object, seconds: int, audiences: Sequence[str], bound: Bound, warn_after: int = 0) -> str:
        now = int(self._clock())
        meta = account["metadata"]
        about: dict[str, Any] = {"namespace": meta["namespace"]}
        if bound.node is not None:
            about["node"] = {key: bound.node[key] for key in ("name", "uid") if bound.node.get(key)}
        if bound.pod is not None:
            about["pod"] = _reference(bound.pod)
        if bound.secret is not None:
            about["secret"] = _reference(bound.secret)
        about["serviceaccount"] = _reference(account)
        if warn_after:
            about["warnafter"] = now + warn_after
        return self._sign(
            {
                "aud": list(audiences),
                "exp": now + seconds,
                "iat": now,
                "iss": self.issuer,
                "jti": str(uuid.uuid4()),
                "kubernetes.io": about,
                "nbf": now,
                "sub": make_username(meta["namespace"], meta["name"]),
            }
        )

    def legacy_token(self, account: Object, secret_name: str) -> str:
        """A token without end, for a secret of type kubernetes.io/service-account-token."""
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
