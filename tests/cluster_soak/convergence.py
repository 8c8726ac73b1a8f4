"""Whether the cluster has reached what its objects declare."""

from __future__ import annotations

import datetime
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

from cluster import nodes
from cluster_soak.workloads import APPS, BATCH, CORE, CRON_JOB, DEPLOYMENTS
from support.https_client import HttpsClient

_LATE: Final = datetime.timedelta(minutes=4)
"""A CronJob of every minute has succeeded in this time, also if its controller has restarted."""
_TRIES: Final = 40


def missing(client: HttpsClient) -> list[str]:
    """Return a sentence for everything that is not as declared.

    Raises:
        OSError: the API server cannot be reached.
    """
    return [*_nodes(client), *_workloads(client), *_pods(client), *_tasks(client), *_endpoints(client)]


def unreached(client: HttpsClient) -> list[str]:
    """Return a sentence for each pod behind a Service that does not answer through the rules of kube-proxy."""
    found = []
    for name in DEPLOYMENTS:
        address = client.call("GET", f"{CORE}/services/{name}").body["spec"]["clusterIP"]
        expected = {pod["metadata"]["name"] for pod in _items(client, f"{CORE}/pods?labelSelector=app={name}")}
        answered: set[str] = set()
        for _ in range(_TRIES * len(expected)):
            with urllib.request.urlopen(f"http://{address}/hostname", timeout=10) as answer:
                answered.add(answer.read().decode())
            if answered >= expected:
                break
        found += [f"pod {pod} does not answer through the Service {name}" for pod in sorted(expected - answered)]
        found += [f"the Service {name} leads to {pod}, which is gone" for pod in sorted(answered - expected)]
    return found


def _items(client: HttpsClient, path: str) -> list[dict[str, Any]]:
    reply = client.call("GET", path)
    if reply.status != 200:
        raise OSError(f"{path}: {reply.status} {reply.message}")
    items: list[dict[str, Any]] = reply.body["items"]
    return items


def _nodes(client: HttpsClient) -> Iterator[str]:
    for node in _items(client, "/api/v1/nodes"):
        if not nodes.ready(node):
            yield f"node {node['metadata']['name']} is not ready"


def _workloads(client: HttpsClient) -> Iterator[str]:
    for kind in ("deployments", "statefulsets"):
        for found in _items(client, f"{APPS}/{kind}"):
            wanted, status = found["spec"]["replicas"], found["status"]
            counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "readyReplicas")]
            if status.get("observedGeneration") != found["metadata"]["generation"] or counts != [wanted] * len(counts):
                yield f"{kind} {found['metadata']['name']} wants {wanted} replicas: {status}"
    for found in _items(client, f"{APPS}/daemonsets"):
        status = found["status"]
        counts = [status.get(name, 0) for name in ("numberReady", "updatedNumberScheduled")]
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        if not current or counts != [status["desiredNumberScheduled"]] * len(counts):
            yield f"daemonsets {found['metadata']['name']}: {status}"


def _pods(client: HttpsClient) -> Iterator[str]:
    for pod in _items(client, f"{CORE}/pods"):
        name, phase = pod["metadata"]["name"], pod["status"].get("phase")
        if "deletionTimestamp" in pod["metadata"]:
            yield f"pod {name} is not deleted yet"
        elif phase not in ("Running", "Succeeded") and "batch.kubernetes.io/job-name" not in pod["metadata"]["labels"]:
            yield f"pod {name} is {phase}"


def _tasks(client: HttpsClient) -> Iterator[str]:
    for job in _items(client, f"{BATCH}/jobs"):
        owners = [owner["kind"] for owner in job["metadata"].get("ownerReferences", [])]
        conditions = {each["type"]: each["status"] for each in job["status"].get("conditions", [])}
        if "CronJob" not in owners and conditions.get("Complete") != "True":
            yield f"job {job['metadata']['name']} is not complete: {job['status']}"
    cron = client.call("GET", f"{BATCH}/cronjobs/{CRON_JOB}").body
    last = cron["status"].get("lastSuccessfulTime") or cron["metadata"]["creationTimestamp"]
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(last)
    if age > _LATE:
        yield f"the CronJob {CRON_JOB} has not succeeded for {age.total_seconds():.0f} s"


def _endpoints(client: HttpsClient) -> Iterator[str]:
    path = "/apis/discovery.k8s.io/v1/namespaces/soak/endpointslices"
    for name in DEPLOYMENTS:
        slices = _items(client, f"{path}?labelSelector=kubernetes.io/service-name={name}")
        ready = sum(endpoint["conditions"]["ready"] for each in slices for endpoint in each["endpoints"] or [])
        wanted = client.call("GET", f"{APPS}/deployments/{name}").body["spec"]["replicas"]
        if ready != wanted:
            yield f"the Service {name} has {ready} of {wanted} endpoints"
