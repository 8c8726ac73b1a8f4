"""Beta gates that are switched off: their fields are dropped, unless stored objects use them, and rules change.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support.definitions import definition
from support.etcd import running_etcd
from support.forms import ETCD, SQLITE, STOCK, feature_gates, serving, serving_over
from support.https_client import MERGE, HttpsClient, Reply, created, patched
from support.service_accounts import ensure_service_account

GATES: Final = (
    "APIServerIdentity",
    "CRDObservedGenerationTracking",
    "EnvFiles",
    "HPAGeneration",
    "ListFromCacheSnapshot",
    "MatchLabelKeysInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "MaxUnavailableStatefulSet",
    "MutablePodResourcesForSuspendedJobs",
    "MutableSchedulingDirectivesForSuspendedJobs",
    "PodDeletionCost",
    "ResourceHealthStatus",
    "ResourceHealthStatusMessage",
    "ServiceCIDRStatusFieldWiping",
    "UnknownVersionInteroperabilityProxy",
    "VolumeLimitScaling",
)
OFF: Final = feature_gates(GATES, enabled=False)
SPREADS: Final = "MatchLabelKeysInPodTopologySpreadSelectorMerge"
APPS: Final = "/apis/apps/v1/namespaces/default"
PODS: Final = "/api/v1/namespaces/default/pods"
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
DRIVERS: Final = "/apis/storage.k8s.io/v1/csidrivers"
SCALERS: Final = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CIDRS: Final = "/apis/networking.k8s.io/v1/servicecidrs"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LABELS: Final = {"app": "a"}
FILE: Final = {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}
SPREAD: Final[dict[str, Any]] = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"tier": "t"}},
    "matchLabelKeys": ["app"],
}


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", **fields}


def pod(name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    spec = {"containers": [container()], **(spec or {})}
    return {"metadata": {"name": name, "labels": LABELS, **metadata}, "spec": spec}


def workload(name: str, pod_spec: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container()], **(pod_spec or {})}}
    spec = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template, **fields}
    return {"metadata": {"name": name}, "spec": spec}


def with_file(value: dict[str, Any] | None = None) -> dict[str, Any]:
    env = [{"name": "E", "valueFrom": FILE if value is None else value}]
    return {"containers": [container(env=env)], "volumes": [{"name": "v", "emptyDir": {}}]}


def rolling(maximum: Any) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": maximum}}


def driver(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"preventPodSchedulingIfMissing": True}}


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpsClient]:
    """A server without the gates, over a store that a server with the gates has written before."""
    directory = tmp_path_factory.mktemp("gates")
    with running_etcd(directory / "etcd") as etcd:
        with serving_over(etcd, request.param, directory / "enabled") as client:
            ensure_service_account(client)
            created(client, f"{APPS}/statefulsets", workload("kept", updateStrategy=rolling(2)))
            created(client, f"{APPS}/deployments", workload("kept", with_file()))
            created(client, f"{APPS}/deployments", workload("spread", {"topologySpreadConstraints": [SPREAD]}))
            created(client, DRIVERS, driver("kept"))
            for path, name in ((f"{APPS}/statefulsets", "kept"), (f"{APPS}/deployments", "kept")):
                assert client.call("GET", f"{path}/{name}").status == 200
        with serving_over(etcd, request.param, directory / "disabled", OFF) as client:
            ensure_service_account(client)
            yield client


def test_stateful_sets_have_no_maximum(client: HttpsClient) -> None:
    path = f"{APPS}/statefulsets"
    for name, strategy in (("given", rolling(2)), ("default", {})):
        spec = created(client, path, workload(name, updateStrategy=strategy))["spec"]
        assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    change = {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 3}}}}
    spec = patched(client, f"{path}/given", change)["spec"]
    assert spec["updateStrategy"]["rollingUpdate"] == {"partition": 0}
    spec = patched(client, f"{path}/kept", change)["spec"]
    assert spec["updateStrategy"]["rollingUpdate"] == {"partition": 0, "maxUnavailable": 3}


def test_drivers_do_not_prevent_scheduling(client: HttpsClient) -> None:
    name = "preventPodSchedulingIfMissing"
    assert name not in created(client, DRIVERS, driver("new"))["spec"]
    body = patched(client, f"{DRIVERS}/new", {"spec": {name: True}})
    assert (name in body["spec"], body["metadata"].get("generation")) == (False, None)
    assert patched(client, f"{DRIVERS}/kept", {"spec": {name: False}})["spec"][name] is False


def test_variables_come_from_no_files(client: HttpsClient) -> None:
    text = 'spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: '
    reply = client.call("POST", PODS, pod("file", with_file()))
    assert (reply.status, text in reply.message) == (422, True)
    assert "fileKeyRef" not in reply.message
    path = f"{APPS}/deployments"
    assert client.call("POST", path, workload("new", with_file())).status == 422
    other = {"fileKeyRef": {**FILE["fileKeyRef"], "key": "L"}}
    template = {"spec": with_file(other)}
    spec = patched(client, f"{path}/kept", {"spec": {"template": template}})["spec"]
    (variable,) = spec["template"]["spec"]["containers"][0]["env"]
    assert variable["valueFrom"]["fileKeyRef"]["key"] == "L"


def test_spreads_have_no_label_keys(client: HttpsClient) -> None:
    without = {key: value for key, value in SPREAD.items() if key != "matchLabelKeys"}
    spec = created(client, PODS, pod("spread", {"topologySpreadConstraints": [SPREAD]}))["spec"]
    assert spec["topologySpreadConstraints"] == [without]
    path = f"{APPS}/deployments"
    spec = created(client, path, workload("new-spread", {"topologySpreadConstraints": [SPREAD]}))["spec"]
    assert spec["template"]["spec"]["topologySpreadConstraints"] == [without]
    changed = {"template": {"spec": {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 2}]}}}
    spec = patched(client, f"{path}/spread", {"spec": changed})["spec"]
    assert spec["template"]["spec"]["topologySpreadConstraints"] == [{**SPREAD, "maxSkew": 2}]


def test_autoscalers_have_no_generation(client: HttpsClient) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "kept"}
    body = {"metadata": {"name": "h"}, "spec": {"maxReplicas": 2, "scaleTargetRef": target}}
    assert "generation" not in created(client, SCALERS, body)["metadata"]
    assert "generation" not in patched(client, f"{SCALERS}/h", {"spec": {"maxReplicas": 3}})["metadata"]
    body["metadata"] = {"name": "given", "generation": 7}
    assert created(client, SCALERS, body)["metadata"]["generation"] == 7
    assert patched(client, f"{SCALERS}/given", {"spec": {"maxReplicas": 3}})["metadata"]["generation"] == 7


def test_status_of_pods_has_no_health_of_resources(client: HttpsClient) -> None:
    created(client, PODS, pod("healthy"))
    resources = [{"resourceID": "r", "health": "Healthy", "message": "m"}]
    state = {
        "name": "c",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "allocatedResourcesStatus": [{"name": "claim:a", "resources": resources}],
    }
    status = patched(client, f"{PODS}/healthy/status", {"status": {"containerStatuses": [state]}})["status"]
    assert [entry["name"] for entry in status["containerStatuses"]] == ["c"]
    assert "allocatedResourcesStatus" not in status["containerStatuses"][0]


def test_status_of_definitions_keeps_observed_generations(client: HttpsClient) -> None:
    """The gate has no effect in kube-apiserver, whose strategy for the status does not use it."""
    created(client, DEFINITIONS, definition("example.com", "Widget"))
    path = f"{DEFINITIONS}/widgets.example.com"

    def established(reply: Reply) -> bool:
        return any(c["type"] == "Established" for c in reply.body["status"].get("conditions") or ())

    conditions = client.until(established, "GET", path, timeout=30).body["status"]["conditions"]
    conditions = [*({**condition, "observedGeneration": 1} for condition in conditions)]
    status = {"observedGeneration": 1, "conditions": conditions}
    body = patched(client, f"{path}/status", {"status": status})["status"]
    assert (body["observedGeneration"], body["conditions"]) == (1, conditions)


def test_any_deletion_cost_is_accepted(client: HttpsClient) -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": "no number"}
    assert created(client, PODS, pod("cheap", annotations=annotations))["metadata"]["annotations"] == annotations


def job(name: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}}
    template = {"spec": {"containers": [container(resources=resources)], "restartPolicy": "Never"}}
    return {"metadata": {"name": name}, "spec": {"suspend": True, "template": template}}


def test_a_suspended_job_keeps_its_resources(client: HttpsClient) -> None:
    created(client, JOBS, job("j"))
    nodes = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    assert patched(client, f"{JOBS}/j", nodes)["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}
    resources = {"requests": {"cpu": "2"}}
    change = {"spec": {"template": {"spec": {"containers": [container(resources=resources)]}}}}
    reply = client.call("PATCH", f"{JOBS}/j", change, MERGE)
    assert (reply.status, "field is immutable" in reply.message) == (422, True)


def test_a_job_that_was_suspended_after_its_start_keeps_its_template(client: HttpsClient) -> None:
    created(client, JOBS, job("started"))
    patched(client, f"{JOBS}/started", {"spec": {"suspend": False}})
    patched(client, f"{JOBS}/started/status", {"status": {"startTime": "2026-01-01T00:00:00Z"}})
    patched(client, f"{JOBS}/started", {"spec": {"suspend": True}})
    condition = {"type": "Suspended", "status": "True"}
    patched(client, f"{JOBS}/started/status", {"status": {"conditions": [condition]}})
    nodes = {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
    reply = client.call("PATCH", f"{JOBS}/started", nodes, MERGE)
    assert (reply.status, "field is immutable" in reply.message) == (422, True)


def test_requests_set_the_status_of_a_range(client: HttpsClient) -> None:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "r",
        "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {"metadata": {"name": "range"}, "spec": {"cidrs": ["10.99.0.0/24"]}, "status": {"conditions": [condition]}}
    assert condition in created(client, CIDRS, body)["status"]["conditions"]


def test_lists_at_a_former_version_are_read_from_the_store(client: HttpsClient) -> None:
    path = "/api/v1/namespaces/default/podtemplates"
    body = {"template": {"metadata": {"labels": LABELS}, "spec": {"containers": [container()]}}}
    version = created(client, path, {"metadata": {"name": "first"}, **body})["metadata"]["resourceVersion"]
    created(client, path, {"metadata": {"name": "second"}, **body})
    assert len(client.call("GET", path).body["items"]) == 2

    def stored() -> float:
        labels = r'{[^}]*resource="podtemplates"[^}]*storage="etcd"[^}]*}'
        page = client.call("GET", "/metrics").message
        return sum(map(float, re.findall(rf"^apiserver_storage_list_total{labels} (\S+)$", page, re.MULTILINE)))

    former = stored()
    items = client.call("GET", f"{path}?resourceVersion={version}&resourceVersionMatch=Exact").body["items"]
    assert [item["metadata"]["name"] for item in items] == ["first"]
    assert stored() == former + 1


def test_the_server_has_no_identity(client: HttpsClient) -> None:
    leases = client.call("GET", f"{LEASES}?labelSelector=apiserver.kubernetes.io/identity").body["items"]
    former = {lease["metadata"]["name"]: lease["spec"]["renewTime"] for lease in leases}
    checks = client.call("GET", "/readyz?verbose").message
    assert "[+]poststarthook/" in checks
    assert "identity-lease" not in checks
    assert len(former) <= 1  # the Lease of the server that had the gates


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_label_keys_of_spreads_are_not_merged_into_selectors(tmp_path: Path, form: str) -> None:
    with serving(form, tmp_path, f"--feature-gates={SPREADS}=false") as client:
        ensure_service_account(client)
        spec = created(client, PODS, pod("spread", {"topologySpreadConstraints": [SPREAD]}))["spec"]
        assert spec["topologySpreadConstraints"] == [SPREAD]
        twice = {**SPREAD, "matchLabelKeys": ["tier"]}
        reply = client.call("POST", PODS, pod("twice", {"topologySpreadConstraints": [twice]}))
        place = "spec.topologySpreadConstraints[0].matchLabelKeys[0]"
        text = f'{place}: Invalid value: "tier": exists in both matchLabelKeys and labelSelector'
        assert (reply.status, reply.message) == (422, f'Pod "twice" is invalid: {text}')
        bare = {key: value for key, value in SPREAD.items() if key != "labelSelector"}
        reply = client.call("POST", PODS, pod("bare", {"topologySpreadConstraints": [bare]}))
        assert reply.status == 422
        assert "must not be specified when labelSelector is not set" in reply.message


@pytest.mark.parametrize("form", [SQLITE, STOCK])
def test_with_the_gates_fields_are_kept(tmp_path: Path, form: str) -> None:
    with serving(form, tmp_path) as client:
        ensure_service_account(client)
        spec = created(client, f"{APPS}/statefulsets", workload("s"))["spec"]
        assert spec["updateStrategy"]["rollingUpdate"] == {"partition": 0, "maxUnavailable": 1}
        assert created(client, DRIVERS, driver("d"))["spec"]["preventPodSchedulingIfMissing"] is True
        spec = created(client, PODS, pod("file", with_file()))["spec"]
        assert spec["containers"][0]["env"][0]["valueFrom"] == {"fileKeyRef": {**FILE["fileKeyRef"], "optional": False}}
        (spread,) = created(client, PODS, pod("p", {"topologySpreadConstraints": [SPREAD]}))["spec"][
            "topologySpreadConstraints"
        ]
        assert spread["labelSelector"]["matchExpressions"] == [{"key": "app", "operator": "In", "values": ["a"]}]
        annotations = {"controller.kubernetes.io/pod-deletion-cost": "no number"}
        assert client.call("POST", PODS, pod("cheap", annotations=annotations)).status == 422
        leases = f"{LEASES}?labelSelector=apiserver.kubernetes.io/identity"
        client.until(lambda reply: len(reply.body["items"]) == 1, "GET", leases, timeout=30)
