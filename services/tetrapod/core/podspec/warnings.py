"""Warnings about pods and pod templates. Upstream: pkg/api/pod/warnings.go."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.annotations import APP_ARMOR, app_armor_field
from tetrapod.core.podspec.claim_spec import claim_spec_warnings
from tetrapod.core.podspec.label_warnings import deprecated_label, node_selector_term
from tetrapod.core.podspec.port_warnings import port_warnings
from tetrapod.core.podspec.security import all_containers
from tetrapod.core.podspec.volume_warnings import deprecated_source, fractional, overlapping_paths
from tetrapod.machinery.addresses import ip_warnings
from tetrapod.machinery.equality import repeated
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import is_dns1123_label

_ANNOTATIONS: Final = (
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        'non-functional in v1.16+; use the "priorityClassName" field instead',
    ),
    ("security.alpha.kubernetes.io/sysctls", 'non-functional in v1.11+; use the "sysctls" field instead'),
    ("security.alpha.kubernetes.io/unsafe-sysctls", 'non-functional in v1.11+; use the "sysctls" field instead'),
)
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


_NAME: Final = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
    "recommended: "
)


def pod_warnings(pod: Object) -> list[str]:
    """Return warnings about deprecated, ignored or conflicting settings in a Pod's spec and annotations."""
    return _warnings(pod.get("spec") or {}, pod["metadata"], "", template=False)


def template_warnings(template: Object | None, path: str) -> list[str]:
    """Return warnings about deprecated, ignored or conflicting settings in a pod template.

    Args:
        template: the pod template; None if it is not set, for which the result is [].
        path: the path of the template, such as `spec.template`.
    """
    if template is None:
        return []
    return _warnings(template.get("spec") or {}, template.get("metadata") or {}, f"{path}.", template=True)


def _warnings(spec: Object, meta: Object, prefix: str, *, template: bool) -> list[str]:
    path, annotations = f"{prefix}spec", meta.get("annotations") or {}
    out: list[str] = []
    selector_texts = ((key, deprecated_label(key)) for key in spec.get("nodeSelector") or ())
    out += [f"{path}.nodeSelector[{key}]: {text}" for key, text in selector_texts if text]
    affinity = spec.get("affinity") or {}
    if node_affinity := affinity.get("nodeAffinity"):
        out += _node_affinity(node_affinity, f"{path}.affinity.nodeAffinity")
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        item_path, key = f"{path}.topologySpreadConstraints[{i}]", constraint.get("topologyKey") or ""
        if text := deprecated_label(key):
            out.append(f"{item_path}.topologyKey: {key} is {text}")
        if constraint.get("labelSelector") is None:
            out.append(f"{item_path}.labelSelector: {_NULL_SELECTOR}")
    if annotations:
        out += [f"{prefix}metadata.annotations[{key}]: {text}" for key, text in _ANNOTATIONS if key in annotations]
    out += _volumes(spec.get("volumes") or [], path)
    out += _lists(spec, path)
    if _SECCOMP_POD in annotations and not (spec.get("securityContext") or {}).get("seccompProfile"):
        out.append(f"{prefix}metadata.annotations[{_SECCOMP_POD}]: {_SECCOMP}")
    containers = list(all_containers(spec, path))
    for container, item_path in containers:
        out += _container(container, item_path, spec, annotations, prefix, template=template)
    out += port_warnings(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        out.append(
            f"{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        )
    return out + _pod_affinity(affinity, f"{path}.affinity") + _addresses(spec, path)


def _node_affinity(node: Object, path: str) -> list[str]:
    out: list[str] = []
    for i, term in enumerate((node.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        out += node_selector_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{i}]", values=False)
    for i, term in enumerate(node.get(_PREFERRED) or ()):
        out += node_selector_term(term.get("preference") or {}, f"{path}.{_PREFERRED}[{i}].preference", values=True)
    return out


def _pod_affinity(affinity: Object, path: str) -> list[str]:
    out: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        for i, term in enumerate(terms.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                out.append(f"{path}.{kind}.{_REQUIRED}[{i}].labelSelector: {_NULL_SELECTOR}")
        for i, term in enumerate(terms.get(_PREFERRED) or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                out.append(f"{path}.{kind}.{_PREFERRED}[{i}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}")
    return out


def _volumes(volumes: list[Object], path: str) -> list[str]:
    out: list[str] = []
    for i, volume in enumerate(volumes):
        volume_path = f"{path}.volumes[{i}]"
        out += deprecated_source(volume, volume_path)
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            out += claim_spec_warnings(template.get("spec") or {}, f"{volume_path}.ephemeral.volumeClaimTemplate.spec")
    return out + overlapping_paths(volumes)


def _lists(spec: Object, path: str) -> list[str]:
    out = [
        f"{path}.hostAliases[{i}].ip: duplicate ip {go_quote(ip)}"
        for i, ip in _repeated([alias.get("ip") or "" for alias in spec.get("hostAliases") or ()])
    ]
    secrets = [ref.get("name") or "" for ref in spec.get("imagePullSecrets") or ()]
    out += [f"{path}.imagePullSecrets[{i}].name: duplicate name {go_quote(name)}" for i, name in _repeated(secrets)]
    out += [f'{path}.imagePullSecrets[{i}].name: invalid empty name ""' for i, name in enumerate(secrets) if not name]
    for name in ("memory", "ephemeral-storage"):
        out += fractional((spec.get("overhead") or {}).get(name), f"{path}.overhead[{name}]")
    return out


def _repeated(values: list[str]) -> list[tuple[int, str]]:
    """Return the index and value of each value that occurred earlier in the list."""
    indexes = repeated(values)
    return [(i, value) for i, value in enumerate(values) if i in indexes]


def _container(
    container: Object, path: str, spec: Object, annotations: Object, prefix: str, *, template: bool
) -> list[str]:
    out: list[str] = []
    name, context = container.get("name") or "", container.get("securityContext") or {}
    if annotations:
        key = _SECCOMP_CONTAINER + name
        if key in annotations and not context.get("seccompProfile"):
            out.append(f"{prefix}metadata.annotations[{key}]: {_SECCOMP}")
        key = APP_ARMOR + name
        pod_profile = (spec.get("securityContext") or {}).get("appArmorProfile")
        has_field = context.get("appArmorProfile") is not None or (
            pod_profile is not None and pod_profile == app_armor_field(annotations.get(key) or "")
        )
        if template and key in annotations and not has_field:
            out.append(
                f'{prefix}metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
            )
    resources = container.get("resources")
    if resources:
        for resource in ("memory", "ephemeral-storage"):
            for part in ("limits", "requests"):
                out += fractional((resources.get(part) or {}).get(resource), f"{path}.resources.{part}[{resource}]")
    return out + _environment(container.get("env") or [], path)


def _environment(env: list[Object], path: str) -> list[str]:
    out: list[str] = []
    seen: set[Any] = set()
    for i, variable in enumerate(env):
        name = variable.get("name") or ""
        # With X="$(X)more", a later definition extends the earlier one instead of hiding it.
        value, self_reference = variable.get("value") or "", f"$({name})"
        hides = variable.get("valueFrom") is not None or value == self_reference or self_reference not in value
        if name in seen and hides:
            out.append(
                f"{path}.env[{i}]: hides previous definition of {go_quote(name)}, which may be dropped when using apply"
            )
        seen.add(name)
    return out


def _addresses(spec: Object, path: str) -> list[str]:
    out: list[str] = []
    for i, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        out += ip_warnings(f"{path}.dnsConfig.nameservers[{i}]", server)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        out += ip_warnings(f"{path}.hostAliases[{i}].ip", alias.get("ip") or "")
    return out


def name_warnings(obj: Object, old: Object | None) -> list[str]:
    """Return a warning if the name of a new object is not a DNS label; an update (`old` is set) gives none."""
    texts = [] if old is not None else is_dns1123_label(obj["metadata"].get("name") or "")
    return [f"{_NAME}[{' '.join(texts)}]"] if texts else []


def same_generation(obj: Object, old: Object | None) -> bool:
    """Return whether this is an update that does not change metadata.generation, hence not the spec either.

    Args:
        old: the stored object; None on create.
    """
    return old is not None and old["metadata"].get("generation") == obj["metadata"].get("generation")


def changed_template_warnings(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about spec.template; none if an update does not change the generation.

    Args:
        old: the stored object; None on create.
    """
    return (
        [] if same_generation(obj, old) else template_warnings((obj.get("spec") or {}).get("template"), "spec.template")
    )


def replicated_warnings(obj: Object, old: Object | None) -> list[str]:
    """Return the warnings about the template and the name of a Deployment or ReplicaSet; pod names begin with it.

    Args:
        old: the stored object; None on create.
    """
    return name_warnings(obj, old) + changed_template_warnings(obj, old)
