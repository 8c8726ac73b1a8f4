"""Tests of the data that services pass to each other: each field is read separately, because another release may send
more or fewer.
"""

from __future__ import annotations

from typing import Any, cast

import orjson
import pytest

from tetrapod.generic.authentication.delegating import user_from_wire
from tetrapod.generic.authorization.delegating import RuleSetCache
from tetrapod.generic.authorization.rbac_storage import RBAC_STORAGES
from tetrapod.generic.authorization.rules import Grant, RuleSet
from tetrapod.generic.client.interface import Client
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.machinery.user import UserInfo

RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WIRE: dict[str, Any] = {
    "cluster": [{"reason": "why", "role": 0, "error": ""}],
    "namespaces": {},
    "roles": [[RULE]],
    "revisions": {},
}


@pytest.mark.parametrize(
    "wire",
    [
        WIRE,
        {**WIRE, "of": "tomorrow", "cluster": [{**WIRE["cluster"][0], "expires": 3}]},
        {"cluster": [{"reason": "why", "rules": [RULE]}]},
    ],
    ids=["this release", "a newer one", "an older one"],
)
def test_unknown_or_missing_fields_of_rules_are_tolerated(wire: dict[str, Any]) -> None:
    rules = RuleSet.from_wire(wire)
    assert list(rules.cluster) == [Grant("why", [RULE])] and not rules.namespaces


class Auth:
    def __init__(self, answer: object) -> None:
        self._answer = answer

    async def raw(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        return 200, orjson.dumps(self._answer)


class NoStorage:
    def resource(self, config: object) -> None:
        return None


@pytest.mark.parametrize(
    "answer", [{}, [], None, {"cluster": 3}, {"cluster": [{"rules": {}}], "namespaces": []}], ids=str
)
async def test_unreadable_rules_fall_back_to_reviews(answer: object) -> None:
    """If it is unavailable, the authorizer sends a SubjectAccessReview, whose form is upstream's."""
    assert RBAC_STORAGES
    cache = RuleSetCache(cast(Client, Auth(answer)), cast(StorageFactory, NoStorage()))
    try:
        rules = await cache.get(UserInfo("jane"))
    except Unavailable:
        return
    assert not rules.namespaces


def test_unknown_or_missing_fields_of_users_are_tolerated() -> None:
    assert user_from_wire({"username": "jane", "mood": "good"}) == UserInfo("jane")
    assert user_from_wire({}) == UserInfo("")
