"""The auth service over an embedded store: policy, authorization that follows storage, delegation, nodes, tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from support.waiting import eventually
from tetrapod.auth.service import BOOTSTRAP_HOOK, AuthOptions, AuthService
from tetrapod.auth.tokens.bound_objects import NODES, PODS, SERVICE_ACCOUNTS
from tetrapod.generic.authorization.delegating import DelegatingAuthorizer, RuleSetCache, SubjectAccessReviewer
from tetrapod.generic.authorization.interface import Attributes, Decision
from tetrapod.generic.authorization.rbac_storage import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC_STORAGES,
    ROLE_BINDINGS,
    ROLES,
)
from tetrapod.generic.http.peers import RULES_PATH
from tetrapod.generic.http.request import BytesBody, Request
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.store import Store
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import LOOPBACK, SERVICES_GROUP, UserInfo

EVE = UserInfo("eve", groups=("system:authenticated",))
GROUP = "rbac.authorization.k8s.io"


class Cluster:
    def __init__(self, storage: CachingStorageFactory) -> None:
        self.storage = storage
        self.lifecycle = Lifecycle()
        self.auth = AuthService(storage, AuthOptions(signing_key=ec.generate_private_key(ec.SECP256R1())))
        self.auth.register(self.lifecycle)
        self.stores = {
            d.resource: Store(d, storage.resource(c))
            for d in self.auth.definitions
            for c in RBAC_STORAGES
            if c.prefix == d.resource
        }
        self.rests = {d.resource: d.rest for d in self.auth.definitions if d.rest is not None}

    async def put(self, resource: str, namespace: str, name: str, *, user: UserInfo = LOOPBACK, **body: Any) -> Object:
        definition = self.stores[resource].definition
        obj: Object = {
            "apiVersion": f"{GROUP}/v1",
            "kind": definition.group_kind.kind,
            "metadata": {"name": name},
            **body,
        }
        definition.strategy.default(obj, "v1")
        entry = await self.stores[resource].create(Context(user, namespace, "v1"), obj)
        return entry.object()

    async def grant(self, namespace: str, name: str, user: str, *rules: dict[str, Any]) -> None:
        await self.put("roles", namespace, name, rules=list(rules))
        await self.put(
            "rolebindings",
            namespace,
            name,
            roleRef={"kind": "Role", "name": name},
            subjects=[{"kind": "User", "name": user}],
        )

    async def eventually(self, question: Attributes, wanted: Decision, authorizer: Any = None) -> str:
        asked = authorizer or self.auth.authorizer
        answer = await eventually(lambda: asked.authorize(question), lambda answer: answer.decision is wanted)
        return str(answer.reason)


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    backend = SqliteBackend(":memory:")
    storage = CachingStorageFactory(backend)
    made = Cluster(storage)
    await made.lifecycle.start()
    yield made
    await made.lifecycle.stop()
    await storage.close()
    await backend.close()


def reads(user: UserInfo, resource: str = "pods", namespace: str = "ns", verb: str = "get", **more: Any) -> Attributes:
    return Attributes(user, verb, namespace=namespace, resource=resource, resource_request=True, **more)


async def test_the_bootstrap_policy_is_in_effect_after_the_start_hook(cluster: Cluster) -> None:
    assert BOOTSTRAP_HOOK in cluster.lifecycle.hooks_done
    counts = {c.prefix: len((await cluster.storage.resource(c).list(ListQuery())).entries) for c in RBAC_STORAGES}
    assert counts == {"clusterroles": 73, "clusterrolebindings": 54, "roles": 7, "rolebindings": 7}
    answer = await cluster.auth.authorizer.authorize(Attributes(EVE, "get", path="/api"))
    assert answer.decision is Decision.ALLOW
    assert answer.reason == (
        'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group '
        '"system:authenticated"'
    )


async def test_a_second_start_writes_nothing(cluster: Cluster) -> None:
    before = await cluster.storage.backend.revision()
    again = Cluster(cluster.storage)
    await again.lifecycle.start()
    await again.lifecycle.stop()
    assert await cluster.storage.backend.revision() == before


async def test_a_changed_bootstrap_policy_is_restored_and_additions_are_kept(cluster: Cluster) -> None:
    roles = cluster.storage.resource(CLUSTER_ROLES)
    bindings = cluster.storage.resource(CLUSTER_ROLE_BINDINGS)
    await roles.delete("system:node")
    added = {"verbs": ["get"], "nonResourceURLs": ["/mine"]}

    async def change(current: Object | None, entry: Any) -> Any:
        from tetrapod.generic.storage.writes import Updated

        assert current is not None
        if "roleRef" in current:
            return Updated({**current, "roleRef": {**current["roleRef"], "name": "view"}})
        return Updated({**current, "rules": [added]})

    await roles.guaranteed_update("system:discovery", change)
    await bindings.guaranteed_update("system:discovery", change)
    again = Cluster(cluster.storage)
    await again.lifecycle.start()
    await again.lifecycle.stop()
    mended = await roles.get("system:discovery")
    assert mended is not None
    assert mended.object()["rules"][0] == added
    assert len(mended.object()["rules"]) > 1
    assert await roles.get("system:node") is not None
    binding = await bindings.get("system:discovery")
    assert binding is not None
    assert binding.object()["roleRef"]["name"] == "system:discovery"


async def test_rights_follow_roles_and_bindings(cluster: Cluster) -> None:
    await cluster.grant("ns", "r", "eve", {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})
    assert (
        await cluster.eventually(reads(EVE), Decision.ALLOW)
        == 'RBAC: allowed by RoleBinding "r/ns" of Role "r" to User "eve"'
    )
    assert (await cluster.auth.authorizer.authorize(reads(EVE, namespace="other"))).decision is Decision.NO_OPINION
    await cluster.storage.resource(ROLES).delete("ns/r")
    assert (
        await cluster.eventually(reads(EVE), Decision.NO_OPINION)
        == 'rbac: RBAC: role.rbac.authorization.k8s.io "r" not found'
    )
    await cluster.storage.resource(ROLE_BINDINGS).delete("ns/r")
    await eventually(lambda: cluster.auth.authorizer.authorize(reads(EVE)), lambda answer: answer.reason == "")


async def test_a_role_of_a_billion_rights_is_rejected(cluster: Cluster) -> None:
    manage = {"verbs": ["create"], "apiGroups": [GROUP], "resources": ["roles"]}
    await cluster.grant("ns", "manager", "eve", manage)
    await cluster.eventually(reads(EVE, "roles", verb="create", group=GROUP), Decision.ALLOW)
    rule = {key: [f"{key}{i}" for i in range(1_000)] for key in ("apiGroups", "resources", "verbs")}
    with pytest.raises(StatusError, match=f"and {1_000**3 - 2_000} more") as caught:
        await cluster.put("roles", "ns", "large", user=EVE, rules=[rule])
    assert caught.value.code == 403
    assert len(caught.value.message) < 100_000


async def test_users_cannot_grant_rights_that_they_do_not_have(cluster: Cluster) -> None:
    manage = {"verbs": ["get", "create"], "apiGroups": [GROUP], "resources": ["roles", "rolebindings"]}
    await cluster.grant("ns", "manager", "eve", manage)
    await cluster.eventually(reads(EVE, "roles", verb="create", group=GROUP), Decision.ALLOW)
    secrets = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["secrets"]}
    with pytest.raises(StatusError, match="attempting to grant RBAC permissions not currently held") as caught:
        await cluster.put("roles", "ns", "more", user=EVE, rules=[secrets])
    assert caught.value.message.endswith('{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}')
    await cluster.put("roles", "ns", "same", user=EVE, rules=[{**manage, "verbs": ["get"]}])
    with pytest.raises(StatusError) as caught:
        await cluster.put("rolebindings", "ns", "b", user=EVE, roleRef={"kind": "Role", "name": "missing"}, subjects=[])
    assert (caught.value.code, caught.value.message) == (404, f'rolebindings.{GROUP} "missing" not found')
    with pytest.raises(StatusError) as caught:
        await cluster.put("clusterrolebindings", "", "b", user=EVE, roleRef={"kind": "Role", "name": "r"}, subjects=[])
    assert (caught.value.code, caught.value.message) == (400, "Namespace parameter required.")
    with pytest.raises(StatusError, match="must have cluster-admin privileges to use the aggregationRule"):
        selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        await cluster.put("clusterroles", "", "agg", user=EVE, aggregationRule=selectors)


class AuthAsClient:
    """A client of the internal endpoints of auth, as other services have it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.asked = 0

    async def raw(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        self.asked += 1
        response = await self._cluster.auth.routes[path](Request(method, path, body=BytesBody(body)))
        return response.status, response.body

    async def create(self, gvr: GroupVersionResource, namespace: str, obj: Object, **query: Any) -> Object:
        self.asked += 1
        made: Object = await self._cluster.rests[gvr.resource].create(Context(), "", obj, None, {})
        return made


async def test_other_services_cache_decisions_and_follow_changes_at_once(cluster: Cluster) -> None:
    client = AuthAsClient(cluster)
    cache = RuleSetCache(client, cluster.storage)  # type: ignore[arg-type]
    watching = asyncio.create_task(cache.run())
    authorizer = DelegatingAuthorizer(cache, SubjectAccessReviewer(client))  # type: ignore[arg-type]
    try:
        await cluster.grant("ns", "r", "eve", {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})
        await cluster.eventually(reads(EVE), Decision.ALLOW, authorizer)
        async with asyncio.timeout(5):
            while True:  # until the set is cached
                before = client.asked
                assert (await authorizer.authorize(reads(EVE))).decision is Decision.ALLOW
                if client.asked == before:
                    break
        rejected = await authorizer.authorize(reads(EVE, "secrets"))
        assert rejected.decision is Decision.NO_OPINION
        await cluster.storage.resource(ROLE_BINDINGS).delete("ns/r")
        await cluster.eventually(reads(EVE), Decision.NO_OPINION, authorizer)
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_a_rules_review_waits_for_the_bootstrap_policy() -> None:
    backend = SqliteBackend(":memory:")
    storage = CachingStorageFactory(backend)
    made = Cluster(storage)
    body = orjson.dumps({"user": EVE.name, "groups": EVE.groups})
    asked = asyncio.create_task(AuthAsClient(made).raw("POST", RULES_PATH, body))
    try:
        await asyncio.wait([asked], timeout=0)  # the review is sent before the policy has been created
        await made.lifecycle.start()
        status, answer = await asyncio.wait_for(asked, 10)
        assert status == 200
        assert "system:discovery" in answer.decode()
    finally:
        await made.lifecycle.stop()
        await storage.close()
        await backend.close()


async def test_internal_paths_are_only_for_services(cluster: Cluster) -> None:
    service = UserInfo("core", groups=(SERVICES_GROUP,))
    admin = UserInfo("admin", groups=("system:masters",))
    assert (
        await cluster.auth.authorizer.authorize(Attributes(service, "post", path=RULES_PATH))
    ).decision is Decision.ALLOW
    assert (
        await cluster.auth.authorizer.authorize(Attributes(admin, "post", path=RULES_PATH))
    ).decision is Decision.DENY
    with pytest.raises(StatusError):
        await cluster.auth.routes[RULES_PATH](Request("POST", RULES_PATH, body=BytesBody(b"{}")))


def pod(name: str, node: str, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "ns", "uid": f"u-{name}"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": {"nodeName": node, "serviceAccountName": "robot", **spec},
    }


async def test_a_node_reads_what_its_pods_need(cluster: Cluster) -> None:
    node = UserInfo("system:node:n1", groups=("system:nodes", "system:authenticated"))
    pods = cluster.storage.resource(PODS)
    volumes = [
        {"name": "s", "secret": {"secretName": "mine"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
    ]
    await pods.create("ns/a", pod("a", "n1", volumes=volumes))
    await pods.create("ns/b", pod("b", "n2", volumes=[{"name": "s", "secret": {"secretName": "theirs"}}]))
    assert (await cluster.auth.authorizer.authorize(reads(node, "secrets", name="mine"))).decision is Decision.ALLOW
    rejected = await cluster.auth.authorizer.authorize(reads(node, "secrets", name="theirs"))
    assert rejected == (Decision.NO_OPINION, "node: no relationship found between node 'n1' and this object", "")
    token = reads(node, "serviceaccounts", verb="create", subresource="token", name="robot")
    assert (await cluster.auth.authorizer.authorize(token)).decision is Decision.ALLOW
    await pods.delete("ns/a")
    await cluster.eventually(reads(node, "secrets", name="mine"), Decision.NO_OPINION)
    every = await cluster.auth.authorizer.authorize(reads(node, "nodes", namespace="", verb="list"))
    assert every.reason == "node: node 'n1' cannot read all nodes, only its own Node object"


async def test_a_requested_token_is_valid_until_its_pod_is_deleted(cluster: Cluster) -> None:
    account = {
        "kind": "ServiceAccount",
        "apiVersion": "v1",
        "metadata": {"name": "robot", "namespace": "ns", "uid": "u-robot"},
    }
    await cluster.storage.resource(SERVICE_ACCOUNTS).create("ns/robot", account)
    await cluster.storage.resource(PODS).create("ns/a", pod("a", "n1"))
    await cluster.storage.resource(NODES).create(
        "n1", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1", "uid": "u-n1"}}
    )
    rest = cluster.auth.token_request_rest
    assert rest is not None
    request: Object = {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "a"}}}
    made = await rest.create(Context(namespace="ns"), "robot", request, None, {})
    review = {"spec": {"token": made["status"]["token"]}}
    answer = await cluster.rests["tokenreviews"].create(Context(), "", review, None, {})
    assert answer["status"]["authenticated"]
    assert answer["status"]["user"]["extra"]["authentication.kubernetes.io/node-uid"] == ["u-n1"]
    await cluster.storage.resource(PODS).delete("ns/a")
    reviews = cluster.rests["tokenreviews"]
    answer = await eventually(
        lambda: reviews.create(Context(), "", review, None, {}), lambda answer: "error" in answer["status"]
    )
    assert answer["status"] == {
        "user": {},
        "error": "[invalid bearer token, service account token has been invalidated]",
    }
    spaced = await cluster.rests["tokenreviews"].create(Context(), "", {"spec": {"token": " x"}}, None, {})
    assert spaced["status"]["user"]["username"] == "system:anonymous"


async def test_results_of_internal_endpoints_survive_json(cluster: Cluster) -> None:
    """The results of the internal endpoints survive JSON."""
    question = orjson.dumps({"user": "eve", "groups": ["system:authenticated"], "revisions": {}})
    response = await cluster.auth.routes[RULES_PATH](Request("POST", RULES_PATH, body=BytesBody(question)))
    wire = orjson.loads(response.body)
    assert any("system:discovery" in grant["reason"] for grant in wire["cluster"])
    assert set(wire["revisions"]) == {c.prefix for c in RBAC_STORAGES}
