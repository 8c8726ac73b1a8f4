"""Defaults of Pod that pod templates do not get. Upstream: pkg/apis/core/v1/defaults.go, SetDefaults_Pod."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.defaults import default_pod_spec, each_container
from tetrapod.core.podspec.handlers import HTTP1, http_actions
from tetrapod.core.podspec.pod_resources import POD_LEVEL_GATE, Amounts, aggregate, at_pod_level
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

FIX_GATE: Final = "PodLevelResourcesFixDefaulting"
"""The gate with which pod-level resources get their defaults after admission, limits included."""


def set_defaults(pod: Object) -> None:
    """Set the defaults of a Pod in place.

    They are the defaults of a pod spec, enableServiceLinks, host ports of a pod with host network, and container
    requests equal to the limits; with a gate, the protocol of HTTP probes and hooks. podIP and podIPs of the status are
    made consistent.
    """
    if status := pod.get("status"):
        _alias_addresses(status)
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    for container in each_container(spec, ephemeral=False):
        _requests_from_limits(container)
    if spec.get("resources") and feature_gates.enabled(POD_LEVEL_GATE) and not feature_gates.enabled(FIX_GATE):
        _default_pod_resources_before_admission(spec)
    if feature_gates.enabled("H2CContainerProbe"):
        for container in each_container(spec):
            for action in http_actions(container):
                if action.get("protocol") is None:
                    action["protocol"] = HTTP1


def _alias_addresses(status: Object) -> None:
    """Make podIP and the first entry of podIPs equal.

    If podIP is set, it wins: podIPs becomes podIP alone where its first entry differs. If it is not set, it becomes the
    first entry.
    """
    first, addresses = status.get("podIP"), status.get("podIPs")
    if first and (not addresses or addresses[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif addresses:
        status["podIP"] = addresses[0].get("ip", "")


def _default_host_ports(spec: Object) -> None:
    """Set an unset hostPort of each container port to its containerPort, because the pod uses the host network."""
    for container in each_container(spec, ephemeral=False):
        for port in container.get("ports") or ():
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort", 0)


def _requests_from_limits(container: Object) -> None:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits:
        return
    requests = resources.get("requests")
    if requests is None:
        requests = resources["requests"] = {}
    for name, value in limits.items():
        requests.setdefault(name, value)


def default_pod_resources_after_admission(spec: Object) -> None:
    """Complete spec.resources of a pod that has pod-level requests or limits; `spec` is changed in place.

    - Unset limits of hugepages that have no request, and unset requests of cpu and memory, become the sum over the
      containers.
    - Then unset requests become the limits.
    - Then unset limits become the sum over the containers, but at least the request, if every container has a limit.

    Without the gate PodLevelResourcesFixDefaulting, it does nothing.
    Upstream: DefaultPodLevelResources
    """
    resources = spec.get("resources") or {}
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    if not (requests or limits) or not feature_gates.enabled(FIX_GATE):
        return
    container_limits = aggregate(spec, "limits")
    _default_huge_pages(container_limits, requests, limits)
    _default_requests(spec, requests, limits)
    limits_by_container = [(c.get("resources") or {}).get("limits") or {} for c in each_container(spec)]
    for name in requests.keys() - limits.keys():
        if (
            at_pod_level(name)
            and name in container_limits
            and all(name in declared for declared in limits_by_container)
        ):
            limits[name] = str(max(container_limits[name], Quantity.of(requests[name])))
    _replace_resources(spec, requests, limits)


def _default_pod_resources_before_admission(spec: Object) -> None:
    """Complete spec.resources of a pod without the gate PodLevelResourcesFixDefaulting; `spec` is changed in place.

    Unlike `default_pod_resources_after_admission`, it sets no limits of cpu and memory, and requests only if there are
    limits.
    Upstream: pkg/apis/core/v1/defaults.go, defaultHugePagePodLimits and defaultPodRequests
    """
    resources = spec["resources"]
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    if not requests and not limits:
        return
    _default_huge_pages(aggregate(spec, "limits"), requests, limits)
    if limits:
        _default_requests(spec, requests, limits)
    _replace_resources(spec, requests, limits)


def _default_huge_pages(container_limits: Amounts, requests: dict[str, Any], limits: dict[str, Any]) -> None:
    """Set unset pod-level limits of huge pages without a request to the total limits of the containers, in place."""
    for name, amount in container_limits.items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, str(amount))


def _default_requests(spec: Object, requests: dict[str, Any], limits: dict[str, Any]) -> None:
    """Set unset pod-level requests to the total of the containers, or else to the limits, in place."""
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, value in limits.items():
        if at_pod_level(name):
            requests.setdefault(name, value)


def _replace_resources(spec: Object, requests: dict[str, Any], limits: dict[str, Any]) -> None:
    spec["resources"] = {
        **spec["resources"],
        **({"limits": limits} if limits else {}),
        **({"requests": requests} if requests else {}),
    }
