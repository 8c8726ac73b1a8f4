"""The lifetimes of requested service account tokens."""

from __future__ import annotations

from typing import Any

import pytest

from tetrapod.auth.tokens.bound_objects import PODS
from tetrapod.auth.tokens.issuer import EXTENDED_SECONDS, WARN_ONLY_SECONDS
from tetrapod.auth.tokens.request import TokenRequests
from tetrapod.generic.registry.context import Context


class _Issuer:
    def __init__(self) -> None:
        self.issued: list[tuple[int, int]] = []

    def bound_token(self, account: Any, seconds: int, audiences: Any, bound: Any, warn_after: int = 0) -> str:
        self.issued.append((seconds, warn_after))
        return "token"


class _Objects:
    async def get(self, config: Any, namespace: str, name: str) -> Any:
        spec = {"serviceAccountName": "default"} if config is PODS else {}
        return {"metadata": {"namespace": namespace, "name": name, "uid": "u"}, "spec": spec}


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
    issuer = _Issuer()
    requests = TokenRequests(issuer, _Objects(), ("api",), max_expiration=maximum)  # type: ignore[arg-type]
    reference = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    spec = {"expirationSeconds": WARN_ONLY_SECONDS, "audiences": ["api"], "boundObjectRef": reference}
    await requests.issue(Context(namespace="default"), "default", {"spec": spec})
    assert issuer.issued == [(lifetime, warn_after)]
