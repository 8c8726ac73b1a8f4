"""Tests of the RBAC policy of the four services.

It exists only where the services run as separate processes, every binding refers to an existing role, and no service is
an administrator.
"""

from __future__ import annotations

from tetrapod.auth.internal_api import InternalAuthorizer
from tetrapod.auth.rbac.policy import bootstrap_policy
from tetrapod.generic.authorization.interface import Attributes, Decision
from tetrapod.generic.http.peers import CORE, RULES_PATH, SECRET_TOKENS_PATH, TOKEN_REQUESTS_PATH
from tetrapod.machinery.user import SERVICES_GROUP, UserInfo


def names(services_apart: bool) -> set[tuple[str, str]]:
    return {
        (p.storage.kind, o["metadata"]["name"])
        for p in bootstrap_policy(services_apart=services_apart)
        for o in p.objects
    }


def test_in_one_process_the_bootstrap_policy_equals_upstreams() -> None:
    assert not [name for _, name in names(False) if "tetrapod" in name]
    assert [name for _, name in names(True) - names(False) if not name.startswith("system:tetrapod:")] == []


def test_every_binding_refers_to_an_existing_role() -> None:
    there = names(True)
    referred = {
        (obj["roleRef"]["kind"], obj["roleRef"]["name"])
        for policy in bootstrap_policy(services_apart=True)
        for obj in policy.objects
        if "roleRef" in obj
    }
    assert referred and referred <= there


def test_no_service_is_an_administrator() -> None:
    administrators = [
        subject["name"]
        for policy in bootstrap_policy(services_apart=True)
        for obj in policy.objects
        if obj.get("roleRef", {}).get("name") == "cluster-admin"
        for subject in obj["subjects"]
    ]
    assert administrators == ["system:masters"]


async def test_only_core_requests_tokens_and_only_services_read_rules() -> None:
    core, other = (
        UserInfo(CORE, groups=(SERVICES_GROUP,)),
        UserInfo("system:tetrapod:extensions", groups=(SERVICES_GROUP,)),
    )
    liar, admin = UserInfo(CORE, groups=()), UserInfo("admin", groups=("system:masters",))

    async def may(user: UserInfo, path: str) -> bool:
        answer = await InternalAuthorizer().authorize(Attributes(user, "post", path=path, resource_request=False))
        assert answer.decision in (Decision.ALLOW, Decision.DENY)
        return answer.decision is Decision.ALLOW

    for path in (TOKEN_REQUESTS_PATH, SECRET_TOKENS_PATH):
        assert [await may(user, path) for user in (core, other, liar, admin)] == [True, False, False, False]
    assert [await may(user, RULES_PATH) for user in (core, other, liar, admin)] == [True, True, False, False]
