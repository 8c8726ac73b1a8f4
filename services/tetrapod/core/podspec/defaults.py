"""Defaults of pods, pod templates and volumes. Upstream: pkg/apis/core/v1/defaults.go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.core.podspec.claim_spec import default_claim_spec
from tetrapod.core.podspec.images import tag_of
from tetrapod.core.podspec.pod_resources import aggregate
from tetrapod.core.podspec.resource_lists import round_requirements, round_up
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.quantity import Quantity

_DEFAULT_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUME_SOURCES_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")


def default_pod(pod: Object) -> None:
    """Set the defaults of a Pod: those of its spec, service links, host ports with the host network, and requests equal to limits."""
    if status := pod.get("status"):
        _alias_addresses(status)
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        return
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    for container in _containers(spec, ephemeral=False):
        _requests_from_limits(container)


def _alias_addresses(status: Object) -> None:
    """Make podIP the first of podIPs; podIP takes precedence if they differ."""
    first, addresses = status.get("podIP"), status.get("podIPs")
    if first and (not addresses or addresses[0].get("ip") != first):
        status["podIPs"] = [{"ip": first}]
    elif addresses:
        status["podIP"] = addresses[0].get("ip", "")


def default_pod_template(template: Object | None) -> None:
    """Set the defaults of a pod template."""
    if template is not None and isinstance(spec := template.get("spec"), dict):
        default_pod_spec(spec)
        if spec.get("overhead") == {}:  # in a Pod, validation rejects it
            del spec["overhead"]


def default_pod_spec(spec: Object) -> None:
    """Set the defaults that pods and pod templates share."""
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account  # serviceAccount is the deprecated name of serviceAccountName
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    spec.setdefault("schedulerName", "default-scheduler")
    for container in _containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    if overhead := spec.get("overhead"):
        round_up(overhead)
    if resources := spec.get("resources"):
        round_requirements(resources)


def _containers(spec: Object, *, ephemeral: bool = True) -> Iterator[Object]:
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()
    if ephemeral:
        yield from spec.get("ephemeralContainers") or ()


def _default_host_ports(spec: Object) -> None:
    """Set hostPort of each container port to its containerPort, because the pod uses the host network."""
    for container in _containers(spec, ephemeral=False):
        for port in container.get("ports") or ():
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort", 0)


def _default_container(container: Object) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if tag_of(container.get("image") or "") == "latest" else "IfNotPresent"
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for env in container.get("env") or ():
        if (source := env.get("valueFrom")) and (ref := source.get("fieldRef")) and not ref.get("apiVersion"):
            ref["apiVersion"] = "v1"
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            _default_probe(probe)
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and hook.get("httpGet") is not None:
            _default_http_get(hook["httpGet"])
    if resources := container.get("resources"):
        round_requirements(resources)


def _default_probe(probe: Object) -> None:
    for field, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        if not probe.get(field):
            probe[field] = value
    if probe.get("httpGet") is not None:
        _default_http_get(probe["httpGet"])
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http_get(action: Object) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


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


def default_pod_resources(spec: Object) -> None:
    """Set missing pod-level requests and limits of a pod that has some. Upstream: DefaultPodLevelResources.

    Each step builds on the ones before: hugepage limits and cpu and memory requests are aggregated from the containers, missing requests
    are set to the limits, and missing limits are aggregated if every container has one.
    """
    resources = spec.get("resources") or {}
    requests, limits = dict(resources.get("requests") or {}), dict(resources.get("limits") or {})
    if not requests and not limits:
        return
    container_limits = aggregate(spec, "limits")
    for name, amount in container_limits.items():
        if name.startswith("hugepages-") and name not in requests:
            limits.setdefault(name, str(amount))
    for name, amount in aggregate(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, value in limits.items():
        if _at_pod_level(name):
            requests.setdefault(name, value)
    limits_by_container = [(c.get("resources") or {}).get("limits") or {} for c in _containers(spec)]
    for name in requests.keys() - limits.keys():
        if _at_pod_level(name) and name in container_limits and all(name in declared for declared in limits_by_container):
            limits[name] = str(max(container_limits[name], Quantity.of(requests[name])))
    spec["resources"] = {**resources, **({"limits": limits} if limits else {}), **({"requests": requests} if requests else {})}


def _at_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def default_volume(volume: Object) -> None:
    """Set the defaults of a pod's volume; one without a source becomes an emptyDir."""
    if not any(value is not None for key, value in volume.items() if key != "name"):
        volume["emptyDir"] = {}
        return
    for name in _VOLUME_SOURCES_WITH_MODE:
        source = volume.get(name)
        if source is not None and source.get("defaultMode") is None:
            source["defaultMode"] = _DEFAULT_MODE
    if (host_path := volume.get("hostPath")) is not None and host_path.get("type") is None:
        host_path["type"] = ""
    if (downward := volume.get("downwardAPI")) is not None:
        _default_downward(downward)
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None and token.get("expirationSeconds") is None:
            token["expirationSeconds"] = 3600
        if (downward := source.get("downwardAPI")) is not None:
            _default_downward(downward)
    if (ephemeral := volume.get("ephemeral")) is not None and (template := ephemeral.get("volumeClaimTemplate")):
        default_claim_spec(template.get("spec") or {})
    for name in ("iscsi", "rbd", "azureDisk", "scaleIO"):
        _default_legacy_source(name, volume.get(name))
    if (image := volume.get("image")) is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = "Always" if tag_of(image.get("reference") or "") == "latest" else "IfNotPresent"


def _default_downward(downward: Object) -> None:
    for item in downward.get("items") or ():
        if (ref := item.get("fieldRef")) and not ref.get("apiVersion"):
            ref["apiVersion"] = "v1"


def _default_legacy_source(name: str, source: Any) -> None:
    if source is None:
        return
    if name == "azureDisk":
        for field, value in (("cachingMode", "ReadWrite"), ("kind", "Shared"), ("fsType", "ext4"), ("readOnly", False)):
            if source.get(field) is None:
                source[field] = value
