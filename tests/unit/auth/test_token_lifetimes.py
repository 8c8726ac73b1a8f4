"""The lifetimes of requested service account tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tetrapod.auth.tokens.bound_objects import PODS
from tetrapod.auth.tokens.issuer import EXTENDED_SECONDS, WARN_ONLY_SECONDS, TokenIssuer
from tetrapod.auth.tokens.request import TokenRequests
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision
from tetrapod.generic.registry.context import Context


class _Signer:
    """A signer that keeps the lifetime and the warning time of each token, in seconds."""

    def __init__(self) -> None:
        self.signed: list[tuple[int, int]] = []

    async def sign(self, claims: Mapping[str, Any]) -> str:
        warn_after = claims["kubernetes.io"].get("warnafter")
        self.signed.append((claims["exp"] - claims["iat"], warn_after - claims["iat"] if warn_after else 0))
        return "token"


class _Objects:
    async def get(self, config: Any, namespace: str, name: str) -> Any:
        spec = {"serviceAccountName": "default"} if config is PODS else {}
        return {"metadata": {"namespace": namespace, "name": name, "uid": "u"}, "spec": spec}


class _AllowAll:
    async def authorize(self, attributes: Attributes) -> AuthorizationResult:
        return AuthorizationResult(Decision.ALLOW)


@pytest.mark.parametrize(
    ("maximum", "lifetime", "warn_after"),
    [
        (0, EXTENDED_SECONDS, WARN_ONLY_SECONDS),
        (24 * 3600, EXTENDED_SECONDS, WARN_ONLY_SECONDS),
        (3600, 3600, 0),
    ],
)
async def test_the_maximum_limits_the_requested_lifetime_and_not_the_extended_one(
    maximum: int, lifetime: int, warn_after: int
) -> None:
    signer = _Signer()
    objects: Any = _Objects()
    requests = TokenRequests(TokenIssuer("api"), signer, objects, ("api",), _AllowAll(), max_expiration=maximum)
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    spec = {"expirationSeconds": WARN_ONLY_SECONDS, "audiences": ["api"], "boundObjectRef": reference}
    await requests.issue(Context(namespace="default"), "default", {"spec": spec})
    assert signer.signed == [(lifetime, warn_after)]
