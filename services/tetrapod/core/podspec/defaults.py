"""Defaults that pods and pod templates share. Upstream: pkg/apis/core/v1/defaults.go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tetrapod.core.podspec.claim_spec import default_claim_spec
from tetrapod.core.podspec.handlers import PROBES, http_actions
from tetrapod.core.podspec.images import tag_of
from tetrapod.core.podspec.pod_resources import round_requirements, round_up
from tetrapod.machinery.gvk import Object

_DEFAULT_MODE: Final = 0o644
_VOLUME_SOURCES_WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")


def default_pod_template(template: Object | None) -> None:
    """Set the defaults of a pod template in place; None, or a template without spec, is left as it is."""
    if template is not None and isinstance(spec := template.get("spec"), dict):
        default_pod_spec(spec)
        if spec.get("overhead") == {}:  # in a Pod, validation rejects it
            del spec["overhead"]


def default_pod_spec(spec: Object) -> None:
    """Set the defaults of a pod spec that pods and pod templates share, in place.

    They are dnsPolicy ClusterFirst, restartPolicy Always, an empty securityContext, 30 seconds of termination grace and
    the default scheduler. Each of serviceAccountName and serviceAccount is set from the other. Containers and volumes
    get their defaults, and quantities are rounded up to a thousandth.
    """
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = (
            account  # serviceAccount is the deprecated name of serviceAccountName
        )
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("restartPolicy", "Always")
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    spec.setdefault("schedulerName", "default-scheduler")
    for container in each_container(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        default_volume(volume)
    if overhead := spec.get("overhead"):
        round_up(overhead)
    if resources := spec.get("resources"):
        round_requirements(resources)


def each_container(spec: Object, *, ephemeral: bool = True) -> Iterator[Object]:
    """Yield the init containers, the containers and, with `ephemeral`, the ephemeral containers of a pod spec."""
    yield from spec.get("initContainers") or ()
    yield from spec.get("containers") or ()
    if ephemeral:
        yield from spec.get("ephemeralContainers") or ()


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
    for name in PROBES:
        if (probe := container.get(name)) is not None:
            _default_probe(probe)
    for action in http_actions(container):
        _default_http_get(action)
    if resources := container.get("resources"):
        round_requirements(resources)


def _default_probe(probe: Object) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    if (grpc := probe.get("grpc")) is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_http_get(action: Object) -> None:
    if not action.get("path"):
        action["path"] = "/"
    if not action.get("scheme"):
        action["scheme"] = "HTTP"


def default_volume(volume: Object) -> None:
    """Set the defaults of a pod's volume in place; a volume without a source becomes an emptyDir.

    File modes default to 0644, the type of a hostPath to "", the lifetime of projected tokens to one hour, and the API
    version of field references to v1. The spec of a claim template gets its defaults, and an image volume its pull
    policy.
    """
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
    if (image := volume.get("image")) is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = "Always" if tag_of(image.get("reference") or "") == "latest" else "IfNotPresent"


def _default_downward(downward: Object) -> None:
    for item in downward.get("items") or ():
        if (ref := item.get("fieldRef")) and not ref.get("apiVersion"):
            ref["apiVersion"] = "v1"


def set_missing(obj: Object, **values: Any) -> None:
    """Set those of the given fields of `obj` that are missing or null, in place."""
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value
