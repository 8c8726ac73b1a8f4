"""The default admission plugins for pods."""

from __future__ import annotations

import orjson
import pytest

from integration.core.conftest import NS, Core, v1
from tetrapod.machinery.gvk import GroupVersionResource
from tetrapod.machinery.status import StatusError


async def test_a_pod_gets_account_token_priority_and_tolerations(core: Core) -> None:
    spec = (await core.pod("p"))["spec"]
    assert (spec["serviceAccountName"], spec["priority"], spec["preemptionPolicy"]) == (
        "default",
        0,
        "PreemptLowerPriority",
    )
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert [t["key"] for t in spec["tolerations"]] == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


async def test_a_pod_without_its_service_account_is_forbidden(core: Core) -> None:
    with pytest.raises(
        StatusError, match='error looking up service account default/robot: serviceaccount "robot" not found'
    ) as raised:
        await core.pod("p", serviceAccountName="robot")
    assert raised.value.code == 403


async def test_limit_ranges_set_defaults_and_are_enforced(core: Core) -> None:
    limit = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}}
    await core.create("limitranges", "LimitRange", "l", spec={"limits": [limit]})
    resources = (await core.pod("p"))["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}}
    big = [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}]
    with pytest.raises(StatusError, match="maximum cpu usage per Container is 1, but limit is 2"):
        await core.pod("q", containers=big)


async def test_a_binding_copies_topology_labels_of_the_node(core: Core) -> None:
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    await core.client.create(v1("nodes"), "", node)
    await core.pod("p")
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"},
    }
    code, _ = await core.client.raw(
        "POST", f"/api/v1/namespaces/{NS}/pods/p/binding", orjson.dumps(binding), {"content-type": "application/json"}
    )
    pod = await core.client.get(v1("pods"), NS, "p")
    assert (code, pod["spec"]["nodeName"]) == (201, "n")
    assert pod["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}


async def test_deleted_volumes_and_claims_remain_until_their_finalizer_is_removed(core: Core) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await core.create("persistentvolumeclaims", "PersistentVolumeClaim", "c", spec=spec)
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    await core.client.create(v1("persistentvolumes"), "", {"metadata": {"name": "v"}, "spec": volume})
    for resource, namespace, name, finalizer in (
        ("persistentvolumeclaims", NS, "c", "kubernetes.io/pvc-protection"),
        ("persistentvolumes", "", "v", "kubernetes.io/pv-protection"),
    ):
        await core.client.delete(v1(resource), namespace, name)
        held = await core.client.get(v1(resource), namespace, name)
        assert (held["metadata"]["finalizers"], "deletionTimestamp" in held["metadata"]) == ([finalizer], True)
        await core.client.patch(v1(resource), namespace, name, {"metadata": {"finalizers": None}})
        with pytest.raises(StatusError) as raised:
            await core.client.get(v1(resource), namespace, name)
        assert raised.value.code == 404


async def test_an_eviction_is_limited_by_the_disruption_budget(core: Core) -> None:
    budgets = GroupVersionResource("policy", "v1", "poddisruptionbudgets")
    await core.client.create(
        v1("pods"),
        NS,
        {
            "metadata": {"name": "p", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"},
        },
    )
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await core.client.patch(v1("pods"), NS, "p", ready, subresource="status")
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
    await core.client.create(budgets, NS, budget)
    allowed = {
        "observedGeneration": 1,
        "disruptionsAllowed": 1,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
    }
    await core.client.patch(budgets, NS, "b", {"status": allowed}, subresource="status")
    body = orjson.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}})
    headers = {"content-type": "application/json"}
    code, _ = await core.client.raw("POST", f"/api/v1/namespaces/{NS}/pods/p/eviction", body, headers)
    status = (await core.client.get(budgets, NS, "b"))["status"]
    assert (code, status["disruptionsAllowed"], list(status["disruptedPods"])) == (201, 0, ["p"])
