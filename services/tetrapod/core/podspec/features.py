"""Removal of pod fields whose feature gates are off, unless the stored object already has them.

Used for pods and for every kind with a pod template. The gates are GenericWorkload and EvictionRequestAPI, which can be
enabled, and ContainerStopSignals, H2CContainerProbe, GRPCContainerProbeTLS, AtomicWriteVolumeUserFields,
EmptyDirVolumeMode and VolumeBindMountOptions, which are always off here.
Upstream: pkg/api/pod/util.go, DropDisabledPodFields and DropDisabledTemplateFields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.gvk import Object

Holders = Iterator[tuple[Object, str]]
"""Pairs of an object and the name of its field that is behind a gate."""

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_INIT_ANNOTATIONS: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{rest}" for stage in ("alpha", "beta") for rest in ("s", "-statuses")
)


def drop_disabled(spec: Object, old_spec: Object) -> None:
    """Drop the fields of a pod spec that belong to disabled feature gates, in place.

    Args:
        old_spec: the stored pod spec, or {} on create. If it uses a feature in any container or volume, the feature's
            fields are kept everywhere.
    """
    for fields_of_gate, gate in _GATES.items():
        if gate and feature_gates.enabled(gate):
            continue
        used = [(holder, key) for holder, key in fields_of_gate(spec) if holder.get(key) is not None]
        if used and not any(holder.get(key) is not None for holder, key in fields_of_gate(old_spec)):
            for holder, key in used:
                del holder[key]
            if fields_of_gate is _stop_signals:
                _drop_lifecycles(spec, [holder for holder, _ in used])


def drop_init_container_annotations(meta: Object) -> None:
    """Drop the alpha and beta annotations that once defined init containers and have no effect now, in place."""
    for key in _INIT_ANNOTATIONS:
        (meta.get("annotations") or {}).pop(key, None)


def drop_disabled_of_template(template: Object | None, old_template: Object | None) -> None:
    """Drop the fields of a pod template that belong to disabled feature gates, and old init container annotations.

    Args:
        template: the new template, changed in place, or None.
        old_template: the stored one, or None on create. If it uses a feature, the feature's fields are kept.
    """
    if template:
        drop_disabled(template.get("spec") or {}, (old_template or {}).get("spec") or {})
        drop_init_container_annotations(template.get("metadata") or {})


def _containers(spec: Object) -> Iterator[Object]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(kind) or ()


def _drop_lifecycles(spec: Object, dropped_from: list[Object]) -> None:
    """Remove the `lifecycle` of a container if it became empty because a gated field was dropped from it.

    An empty `lifecycle` that the client sent is kept.

    Args:
        spec: the pod spec.
        dropped_from: the `lifecycle` objects of `spec` from which a field was dropped; they are compared by identity.
    """
    for container in _containers(spec):
        hooks = container.get("lifecycle")
        if hooks == {} and any(hooks is holder for holder in dropped_from):
            del container["lifecycle"]


def _stop_signals(spec: Object) -> Holders:
    for container in _containers(spec):
        if "lifecycle" in container:
            yield container["lifecycle"] or {}, "stopSignal"


def _http_protocols(spec: Object) -> Holders:
    for container in _containers(spec):
        hooks = container.get("lifecycle") or {}
        probes = (container[probe] for probe in _PROBES if probe in container)
        for handler in (*probes, hooks.get("postStart"), hooks.get("preStop")):
            if handler and (action := handler.get("httpGet")):
                yield action, "protocol"


def _grpc_modes(spec: Object) -> Holders:
    for container in _containers(spec):
        for probe in _PROBES:
            if probe in container:
                yield (container[probe] or {}).get("grpc") or {}, "mode"


def _volume_users(spec: Object) -> Holders:
    for volume in spec.get("volumes") or ():
        for kind in ("secret", "configMap", "downwardAPI", "projected"):
            if source := volume.get(kind):
                yield source, "defaultUser"
                for part in (source, *_projected(source)):
                    yield part, "user"
                    for item in part.get("items") or ():
                        yield item, "user"


def _projected(source: Object) -> Iterator[Object]:
    for projection in source.get("sources") or ():
        yield from (part for part in projection.values() if isinstance(part, dict))


def _volume_modes(spec: Object) -> Holders:
    for volume in spec.get("volumes") or ():
        yield volume.get("emptyDir") or {}, "mode"


def _bind_options(spec: Object) -> Holders:
    for container in _containers(spec):
        for mount in container.get("volumeMounts") or ():
            yield mount, "bindMountOptions"


def _scheduling_group(spec: Object) -> Holders:
    yield spec, "schedulingGroup"


def _eviction_responders(spec: Object) -> Holders:
    yield spec, "evictionResponders"


_GATES: Final[dict[Callable[[Object], Holders], str]] = {
    _stop_signals: "",
    _http_protocols: "",
    _grpc_modes: "",
    _volume_users: "",
    _volume_modes: "",
    _bind_options: "",
    _scheduling_group: "GenericWorkload",
    _eviction_responders: "EvictionRequestAPI",
}
"""The functions that find the fields of a gate, with its name, or "" if the fields are always dropped."""
