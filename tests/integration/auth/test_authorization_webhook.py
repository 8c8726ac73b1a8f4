"""Authorization by a real webhook over TLS: its requests, its match conditions, its failures, and how long its
decisions are cached.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.kubeconfig import write_kubeconfig
from support.webhook import HOLD, Answer, WebhookServer, webhook_server
from tetrapod.auth.authorizers.match_conditions import MatchConditions, compile_condition
from tetrapod.generic.authorization.interface import Attributes, AuthorizationResult, Decision
from tetrapod.generic.authorization.metrics import DECISIONS, EVALUATIONS, FAIL_OPEN
from tetrapod.generic.authorization.union import AlwaysAllow, Named, UnionAuthorizer
from tetrapod.generic.authorization.webhook import WebhookAuthorizer, WebhookOptions
from tetrapod.generic.proxy.pool import BackendPool
from tetrapod.generic.webhook.kubeconfig import read_kubeconfig
from tetrapod.generic.webhook.review_client import Backoff
from tetrapod.machinery.user import UserInfo

JANE = UserInfo("jane", "7", ("a", "b"), {"k": ("v",)})
PODS = Attributes(JANE, "list", namespace="ns", version="v1", resource="pods", resource_request=True)


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with webhook_server() as made:
        yield made


@asynccontextmanager
async def authorizer(
    server: WebhookServer, tmp_path: Path, *conditions: str, **options: Any
) -> AsyncIterator[WebhookAuthorizer]:
    pool = BackendPool()
    target = read_kubeconfig(str(write_kubeconfig(tmp_path / "kubeconfig", server, "/authorize")))
    compiled = (
        MatchConditions([compile_condition(condition) for condition in conditions], "hook") if conditions else None
    )
    options = {"name": "hook", "timeout": 5.0, "conditions": compiled, "backoff": Backoff(initial=0.01), **options}
    yield WebhookAuthorizer(WebhookOptions(target, **options), pool)
    await pool.close()


def reviewed(version: str = "v1", **status: Any) -> dict[str, Any]:
    return {"apiVersion": f"authorization.k8s.io/{version}", "kind": "SubjectAccessReview", "status": status}


@pytest.mark.parametrize(("version", "groups"), [("v1", "groups"), ("v1beta1", "group")])
async def test_the_review_contains_the_attributes_of_the_request(
    server: WebhookServer, tmp_path: Path, version: str, groups: str
) -> None:
    server.on("/authorize", lambda _: reviewed(version, allowed=True, reason="because"))
    selected = Attributes(
        JANE,
        "list",
        namespace="ns",
        group="apps",
        version="v1",
        resource="deployments",
        resource_request=True,
        field_requirements=({"key": "metadata.name", "operator": "In", "values": ["x"]},),
        label_requirements=({"key": "e", "operator": "Exists"},),
    )
    async with authorizer(server, tmp_path, version=version) as made:
        assert await made.authorize(selected) == AuthorizationResult(Decision.ALLOW, "because")
        await made.authorize(Attributes(UserInfo("x"), "get", path="/metrics"))
    path, _, body = server.seen[0]
    assert path == "POST /authorize?timeout=5s"
    resource = {"namespace": "ns", "verb": "list", "group": "apps", "version": "v1", "resource": "deployments"}
    resource |= {
        "fieldSelector": {"requirements": [{"key": "metadata.name", "operator": "In", "values": ["x"]}]},  # type: ignore[dict-item]
        "labelSelector": {"requirements": [{"key": "e", "operator": "Exists"}]},  # type: ignore[dict-item]
    }
    assert body == {
        "kind": "SubjectAccessReview",
        "apiVersion": f"authorization.k8s.io/{version}",
        "metadata": {},
        "spec": {"user": "jane", "uid": "7", groups: ["a", "b"], "extra": {"k": ["v"]}, "resourceAttributes": resource},
        "status": {"allowed": False},
    }
    assert server.seen[1][2]["spec"] == {"user": "x", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}


@pytest.mark.parametrize(
    ("status", "decided"),
    [
        ({"allowed": True}, AuthorizationResult(Decision.ALLOW)),
        ({"allowed": False, "reason": "no idea"}, AuthorizationResult(Decision.NO_OPINION, "no idea")),
        ({"allowed": False, "denied": True, "reason": "never"}, AuthorizationResult(Decision.DENY, "never")),
        (
            {"allowed": True, "denied": True},
            AuthorizationResult(
                Decision.DENY, "", "webhook subject access review returned both allow and deny response"
            ),
        ),
    ],
)
async def test_the_decision_follows_the_response(
    server: WebhookServer, tmp_path: Path, status: dict[str, Any], decided: AuthorizationResult
) -> None:
    server.on("/authorize", lambda _: reviewed(**status))
    async with authorizer(server, tmp_path) as made:
        assert await made.authorize(PODS) == decided


async def test_decisions_are_cached_for_their_ttl(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authorize", lambda review: reviewed(allowed=review["spec"]["user"] == "jane"))
    joe = Attributes(UserInfo("joe"), "get", path="/x")
    async with authorizer(server, tmp_path, unauthorized_ttl=0) as made:
        for _ in range(3):
            await made.authorize(PODS)
            await made.authorize(joe)
    assert [body["spec"]["user"] for _, _, body in server.seen] == ["jane", "joe", "joe", "joe"]


async def test_large_reviews_are_not_cached(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authorize", lambda _: reviewed(allowed=True))
    async with authorizer(server, tmp_path) as made:
        for _ in range(2):
            await made.authorize(Attributes(JANE, "get", path="/" + "x" * 10_000))
    assert len(server.seen) == 2


@pytest.mark.parametrize("deny", [False, True])
@pytest.mark.parametrize(
    ("answer", "tries", "text"),
    [
        (
            Answer(500, b"boom", {"content-type": "text/plain"}),
            5,
            'an error on the server ("boom") has prevented the request from succeeding',
        ),
        (Answer(403, b"no", {"content-type": "text/plain"}), 1, "no"),
        (Answer(200, b"xx"), 1, "couldn't get version/kind"),
        (
            Answer(200, b'{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v3"}'),
            1,
            'no kind "SubjectAccessReview" is registered',
        ),
    ],
)
async def test_a_failure_is_decided_by_the_failure_policy(
    server: WebhookServer, tmp_path: Path, answer: Any, tries: int, text: str, deny: bool
) -> None:
    server.on("/authorize", lambda _: answer)
    failed, opened = EVALUATIONS.values.get(("hook", "error"), 0), FAIL_OPEN.values.get(("hook", "error"), 0)
    async with authorizer(server, tmp_path, deny_on_failure=deny) as made:
        found = await made.authorize(PODS)
    assert (found.decision, found.reason) == (Decision.DENY if deny else Decision.NO_OPINION, "")
    assert text in found.error
    assert len(server.seen) == tries
    assert EVALUATIONS.values[("hook", "error")] - failed == tries
    assert FAIL_OPEN.values.get(("hook", "error"), 0) - opened == (0 if deny else 1)


async def test_a_webhook_without_a_response_times_out(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authorize", lambda _: HOLD)
    async with authorizer(server, tmp_path, timeout=0.1) as made:
        found = await made.authorize(PODS)
    assert found.decision is Decision.NO_OPINION
    assert "Client.Timeout exceeded" in found.error
    assert EVALUATIONS.values[("hook", "timeout")] >= 1


async def test_match_conditions_avoid_calls(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authorize", lambda _: reviewed(allowed=True))
    conditions = (
        "has(request.resourceAttributes) && request.resourceAttributes.namespace == 'ns'",
        "!('system:masters' in request.groups) && request.extra['k'][0] == 'v'",
    )
    async with authorizer(server, tmp_path, *conditions) as made:
        assert (await made.authorize(PODS)).decision is Decision.ALLOW
        assert await made.authorize(Attributes(JANE, "get", path="/x")) == AuthorizationResult(Decision.NO_OPINION)
        assert len(server.seen) == 1
        unsure = Attributes(UserInfo("joe"), "get", namespace="ns", resource="pods", resource_request=True)
        found = await made.authorize(unsure)
        assert len(server.seen) == 1
    assert found.decision is Decision.NO_OPINION
    assert found.error == f"cel evaluation error: expression '{conditions[1]}' resulted in error: no such key: k"


async def test_a_false_condition_takes_precedence_over_a_failing_one(server: WebhookServer, tmp_path: Path) -> None:
    async with authorizer(
        server, tmp_path, "request.extra['x'][0] == 'y'", "request.user != 'jane'", deny_on_failure=True
    ) as made:
        assert await made.authorize(PODS) == AuthorizationResult(Decision.NO_OPINION)


async def test_failing_conditions_deny_if_failures_deny(server: WebhookServer, tmp_path: Path) -> None:
    async with authorizer(server, tmp_path, "request.extra['x'][0] == 'y'", deny_on_failure=True) as made:
        assert (await made.authorize(PODS)).decision is Decision.DENY
    assert server.seen == []


async def test_conditions_see_selectors(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authorize", lambda _: reviewed(allowed=True))
    condition = (
        "request.resourceAttributes.?labelSelector.requirements.orValue([]).exists(r, "
        "r.key == 'e' && r.values.size() == 0)"
    )
    async with authorizer(server, tmp_path, condition) as made:
        assert (await made.authorize(PODS)).decision is Decision.NO_OPINION
        selected = Attributes(
            JANE,
            "list",
            resource="pods",
            resource_request=True,
            label_requirements=({"key": "e", "operator": "Exists"},),
        )
        assert (await made.authorize(selected)).decision is Decision.ALLOW


async def test_a_denial_ends_the_chain_with_its_reason(server: WebhookServer, tmp_path: Path) -> None:
    server.on("/authorize", lambda _: reviewed(allowed=False, denied=True, reason="never"))
    async with authorizer(server, tmp_path) as made:
        union = UnionAuthorizer([Named("hook", made, "Webhook"), Named("alwaysallow", AlwaysAllow(), "AlwaysAllow")])
        before = DECISIONS.values.get(("Webhook", "hook", "denied"), 0)
        assert await union.authorize(PODS) == AuthorizationResult(Decision.DENY, "never")
        assert DECISIONS.values[("Webhook", "hook", "denied")] == before + 1
        server.on("/authorize", lambda _: reviewed(allowed=False))
        other = Attributes(UserInfo("joe"), "get", path="/x")
        assert (await union.authorize(other)).decision is Decision.ALLOW
