"""A Deployment that the autoscaler of the stock controller manager scales."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neighbours.conftest import Site
from support.stock import controller_manager
from support.waiting import until

_CONTROLLERS = ("deployment-controller", "replicaset-controller", "horizontal-pod-autoscaler-controller")


@contextmanager
def autoscaler_controller(site: Site, *flags: str) -> Iterator[None]:
    """Run the stock controller manager with the controllers of Deployments and their autoscalers."""
    argv = (
        f"--controllers={','.join(_CONTROLLERS)}",
        "--horizontal-pod-autoscaler-sync-period=1s",
        # Upstream waits for five minutes until it believes the usage of a new pod.
        "--horizontal-pod-autoscaler-cpu-initialization-period=1ms",
        *flags,
    )
    with controller_manager(site.directory, site.kubeconfig, *argv):
        yield


def create_deployment(site: Site, name: str, node: str) -> None:
    """Create a Deployment whose pods, labelled `app`, request 100m of CPU and are bound to a node."""
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"nodeName": node, "containers": [container]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    site.kubectl("apply", "-f", "-", stdin=json.dumps(deployment))


def create_autoscaler(site: Site, name: str, metric: Any, maximum: int) -> None:
    """Create an autoscaler of the Deployment of this name that scales down without a delay."""
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": maximum,
            "metrics": [metric],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }
    site.kubectl("apply", "-f", "-", stdin=json.dumps(autoscaler))


def until_replicas(site: Site, name: str, count: int) -> None:
    """Wait until the autoscaler has set the number of replicas."""
    until(
        lambda: int(site.kubectl.json("get", "deployment", name)["spec"]["replicas"]),
        lambda replicas: replicas == count,
        timeout=120,
        description=f"{count} replicas",
    )


def rescalings(site: Site, name: str) -> list[str]:
    """Return the messages of the events with which the autoscaler reports a change."""
    selector = f"--field-selector=reason=SuccessfulRescale,involvedObject.name={name}"
    return site.kubectl(
        "get", "events", selector, "-o", 'jsonpath={range .items[*]}{.message}{"\\n"}{end}'
    ).splitlines()
