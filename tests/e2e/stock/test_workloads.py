"""Workloads of every kind under upstream's controllers and scheduler."""

from __future__ import annotations

import time
from typing import Any

import pytest

from e2e.stock.conftest import Space, condition, must, template
from support.waiting import until

pytestmark = [pytest.mark.stock, pytest.mark.timeout(300)]

DEPLOYMENTS, SETS, REVISIONS = "apps/v1/deployments", "apps/v1/replicasets", "apps/v1/controllerrevisions"
JOBS, CRON_JOBS = "batch/v1/jobs", "batch/v1/cronjobs"
SLICES = "discovery.k8s.io/v1/endpointslices"


def deployment(name: str, replicas: int) -> Any:
    labels = {"app": name}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template(labels)},
    }


def test_a_deployment_rolls_out_and_updates(space: Space) -> None:
    space.create(DEPLOYMENTS, deployment("web", 3))
    space.until(DEPLOYMENTS, "web", lambda d: d["status"].get("availableReplicas") == 3)
    pods = space.items("pods", "app=web")
    assert {p["spec"]["nodeName"] for p in pods} == {"node-a", "node-b", "node-c"}
    assert all(p["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet" for p in pods)
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    space.patch(DEPLOYMENTS, "web", change)
    done = space.until(
        DEPLOYMENTS,
        "web",
        lambda d: d["status"].get("observedGeneration") == 2 and d["status"]["replicas"] == 3 and rolled(d),
    )
    assert done["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    assert condition(done, "Progressing") == condition(done, "Available") == "True"
    assert sorted(s["spec"]["replicas"] for s in space.items(SETS)) == [0, 3]
    reasons = {event["reason"] for event in until(lambda: space.items("events"), lambda events: len(events) > 8)}
    assert {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled"} <= reasons
    space.delete(DEPLOYMENTS, "web", "Foreground")
    space.until_gone(DEPLOYMENTS, "web")
    assert not space.items(SETS)
    until(lambda: space.items("pods"), lambda pods: not pods)


def rolled(deployment: Any) -> bool:
    status = deployment["status"]
    if (status.get("observedGeneration"), status.get("replicas")) != (2, 3):
        return False
    return (status.get("updatedReplicas"), status.get("availableReplicas")) == (3, 3)


def test_a_stateful_set_creates_pods_in_order_with_claims(space: Space) -> None:
    labels = {"app": "db"}
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    for i in range(2):
        volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        reserved = {"claimRef": {"namespace": space.name, "name": f"data-db-{i}"}}
        body = {"metadata": {"name": f"{space.name}-{i}"}, "spec": {**volume, **reserved}}
        must(space.client("POST", "/api/v1/persistentvolumes", body), 201)
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": labels}, "template": template(labels)}
    space.create(
        "apps/v1/statefulsets", {"metadata": {"name": "db"}, "spec": {**spec, "volumeClaimTemplates": [claim]}}
    )
    done = space.until("apps/v1/statefulsets", "db", lambda s: s["status"].get("readyReplicas") == 2)
    assert [p["metadata"]["name"] for p in space.items("pods", "app=db")] == ["db-0", "db-1"]
    assert done["status"]["currentRevision"] == done["status"]["updateRevision"]
    assert len(space.items(REVISIONS)) == 1
    for i in range(2):
        assert space.until("persistentvolumeclaims", f"data-db-{i}", lambda c: c["status"]["phase"] == "Bound")["spec"][
            "volumeName"
        ]
        must(space.client("DELETE", f"/api/v1/persistentvolumes/{space.name}-{i}"), 200)


def test_a_daemon_set_has_a_pod_on_every_node(space: Space) -> None:
    labels = {"app": "agent"}
    spec = {"selector": {"matchLabels": labels}, "template": template(labels)}
    space.create("apps/v1/daemonsets", {"metadata": {"name": "agent"}, "spec": spec})
    done = space.until("apps/v1/daemonsets", "agent", lambda d: d["status"].get("numberAvailable") == 3)
    assert done["status"]["desiredNumberScheduled"] == 3
    assert {p["spec"]["nodeName"] for p in space.items("pods")} == {"node-a", "node-b", "node-c"}


def test_jobs_complete_and_are_deleted_after_their_ttl(space: Space) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    space.create(JOBS, {"metadata": {"name": "sum"}, "spec": {"completions": 3, "parallelism": 2, "template": pod}})
    done = space.until(JOBS, "sum", lambda j: condition(j, "Complete") == "True")
    assert done["status"]["succeeded"] == 3
    assert not done["status"].get("uncountedTerminatedPods")
    assert all(not p["metadata"].get("finalizers") for p in space.items("pods"))
    space.create(JOBS, {"metadata": {"name": "brief"}, "spec": {"ttlSecondsAfterFinished": 1, "template": pod}})
    space.until_gone(JOBS, "brief")


def test_an_indexed_job_names_its_pods(space: Space) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "template": pod}
    space.create(JOBS, {"metadata": {"name": "parts"}, "spec": spec})
    assert (
        space.until(JOBS, "parts", lambda j: condition(j, "Complete") == "True")["status"]["completedIndexes"] == "0,1"
    )


def test_a_cron_job_starts_its_job_every_minute(space: Space) -> None:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}
    body = {"metadata": {"name": "tick"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}}}
    created = space.create(CRON_JOBS, body)
    # The schedule counts from the creation of a cron job: with an earlier creation it has a missed run, and the test
    # need not wait.
    assert created["metadata"]["creationTimestamp"]
    done = space.until(CRON_JOBS, "tick", lambda c: c["status"].get("lastSuccessfulTime"), timeout=90)
    assert (
        done["status"]["lastScheduleTime"]
        <= done["status"]["lastSuccessfulTime"]
        <= time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    )


def test_a_service_gets_endpoint_slices_for_its_pods(space: Space) -> None:
    space.create(
        "services",
        {
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        },
    )
    space.create(DEPLOYMENTS, deployment("web", 2))
    chosen = "kubernetes.io/service-name=web"
    slices = until(
        lambda: space.items(SLICES, chosen), lambda found: sum(len(s["endpoints"] or ()) for s in found) == 2
    )
    assert slices[0]["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert all(e["conditions"]["ready"] and e["nodeName"].startswith("node-") for e in slices[0]["endpoints"])
    space.until("endpoints", "web", lambda e: len(e["subsets"][0]["addresses"]) == 2)
    space.patch(f"{DEPLOYMENTS}", "web", {"spec": {"replicas": 0}})
    until(lambda: space.items(SLICES, chosen), lambda found: not any(s["endpoints"] for s in found))
    space.delete("services", "web")
    until(lambda: space.items(SLICES, chosen), lambda found: not found)


def test_an_autoscaler_reports_missing_metrics(space: Space) -> None:
    space.create(DEPLOYMENTS, deployment("web", 1))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4, "metrics": [metric]}
    space.create("autoscaling/v2/horizontalpodautoscalers", {"metadata": {"name": "web"}, "spec": spec})
    found = space.until(
        "autoscaling/v2/horizontalpodautoscalers", "web", lambda h: condition(h, "ScalingActive") == "False"
    )
    assert condition(found, "AbleToScale") == "True"
    assert found["status"]["currentReplicas"] == 1


def test_a_disruption_budget_counts_its_pods_and_is_enforced(space: Space) -> None:
    space.create(DEPLOYMENTS, deployment("web", 2))
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    space.create("policy/v1/poddisruptionbudgets", budget)
    found = space.until("policy/v1/poddisruptionbudgets", "web", lambda b: b["status"].get("disruptionsAllowed") == 1)
    assert (found["status"]["expectedPods"], found["status"]["desiredHealthy"]) == (2, 1)
    evicted, kept = (p["metadata"]["name"] for p in space.items("pods"))
    must(space.client("POST", space.path("pods", evicted, "eviction"), {"metadata": {"name": evicted}}), 201)
    assert space.client("POST", space.path("pods", kept, "eviction"), {"metadata": {"name": kept}}).status == 429


def test_unschedulable_pods_report_the_reason_and_stay_pending(space: Space) -> None:
    space.create(
        "pods", {"metadata": {"name": "p"}, "spec": {**template({})["spec"], "nodeSelector": {"disk": space.name}}}
    )
    waiting = space.until("pods", "p", lambda p: condition(p, "PodScheduled") == "False")
    assert "0/3 nodes are available" in waiting["status"]["conditions"][0]["message"]
    headers = {"Content-Type": "application/merge-patch+json"}
    must(space.client("PATCH", "/api/v1/nodes/node-b", {"metadata": {"labels": {"disk": space.name}}}, headers), 200)
    assert space.until("pods", "p", lambda p: p["status"]["phase"] == "Running")["spec"]["nodeName"] == "node-b"


def test_a_pod_of_higher_priority_preempts_another(space: Space) -> None:
    must(
        space.client(
            "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": space.name}, "value": 1000}
        ),
        201,
    )
    big = {"resources": {"requests": {"cpu": "5"}}, "name": "c", "image": "nginx"}
    for i in range(3):
        space.create("pods", {"metadata": {"name": f"light-{i}"}, "spec": {"containers": [big]}})
        space.until("pods", f"light-{i}", lambda p: p["status"]["phase"] == "Running")
    space.create(
        "pods", {"metadata": {"name": "heavy"}, "spec": {"containers": [big], "priorityClassName": space.name}}
    )
    space.until("pods", "heavy", lambda p: p["status"]["phase"] == "Running")
    assert len(space.items("pods")) == 3
    must(space.client("DELETE", f"/apis/scheduling.k8s.io/v1/priorityclasses/{space.name}"), 200)
