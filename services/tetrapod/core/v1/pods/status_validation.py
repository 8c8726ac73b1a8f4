"""Validation of a pod's status, which the kubelet reports.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodStatusUpdate.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.podspec.annotations import annotation_changes, pod_annotations
from tetrapod.core.v1.pods.node_resources import STATUSES, claim_statuses, declared_claim_statuses
from tetrapod.core.v1.pods.restarts import transitions
from tetrapod.core.v1.volume_health import declared_pod_volumes, pod_volumes
from tetrapod.core.validation.differences import internal_list
from tetrapod.core.validation.names import (
    address,
    dns_label,
    dns_subdomain,
    families,
    immutable,
    in_range,
    qualified_name,
    user_id,
)
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_SYSTEM_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_HEALTH: Final = frozenset({"Healthy", "Unhealthy", "Unknown"})
_NEGATIVE: Final = "must be a non-negative integer"
_NAMES: Final = "spec.initContainers.name or spec.containers.name"
_REQUESTS: Final = "spec.initContainers.resources.requests or spec.containers.resources.requests"
_LONGEST_REFERENCE: Final = 256
_MAX_UID: Final = 2**32 - 1
"""The largest uid in a container's status: any Linux uid, although a spec may only request ids up to 2^31 - 1."""
_STATUSES: Final = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}


def validate_status(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated status of a pod, and its annotations, whose AppArmor and mirror pod keys must not change.

    Names of conditions are valid, qosClass is immutable, and terminated containers do not start again unless their
    restart policy says so. IPs, container users and allocated resources are valid, and claims are those of the spec.
    """
    status, old_status = new.get("status") or {}, old.get("status") or {}
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = annotation_changes(new["metadata"], old["metadata"])
    errors += pod_annotations(new["metadata"], spec, "metadata.annotations")
    for i, condition in enumerate(status.get("conditions") or ()):
        if (condition.get("observedGeneration") or 0) < 0:
            errors.append(
                field.invalid(f"status.conditions[{i}].observedGeneration", condition["observedGeneration"], _NEGATIVE)
            )
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            errors += qualified_name(condition.get("type") or "", f"status.conditions[{i}].Type")
    errors += _nominated(status, old_status, spec)
    if (status.get("observedGeneration") or 0) < 0:
        errors.append(field.invalid("status.observedGeneration", status["observedGeneration"], _NEGATIVE))
    errors += immutable(status.get("qosClass") or "", old_status.get("qosClass") or "", "status.qosClass")
    for name in _STATUSES:
        errors += transitions(status.get(name) or [], old_status.get(name) or [], name, old_spec)
    errors += _claim_statuses(status, spec)
    errors += _extended_claim(status.get("extendedResourceClaimStatus"), spec, "status.extendedResourceClaimStatus")
    errors += claim_statuses(status, spec)
    volume_health = status.get("volumeHealth") or []
    errors += pod_volumes(volume_health, spec.get("volumes") or [])
    errors += _addresses(status, old_status, "podIPs")
    if (ips := status.get("podIPs")) and not status.get("podIP"):
        text = "podIP and podIPs must either both be set or both be unset"
        errors.append(field.invalid("status.podIPs", internal_list("IPHolder", ips), text))
    if status.get("hostIPs") and (status.get("hostIP") or "") != (first := status["hostIPs"][0].get("ip") or ""):
        errors.append(field.invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
    errors += _addresses(status, old_status, "hostIPs")
    for name in _STATUSES:
        errors += _users(status.get(name) or [], spec, f"status.{name}")
    for name, kind in _STATUSES.items():
        errors += _allocated(status.get(name) or [], spec.get(kind) or [], kind, f"status.{name}")
    if feature_gates.enabled("ImageVolumeWithDigest"):
        for name in _STATUSES:
            errors += _image_volumes(status.get(name) or [], f"status.{name}")
    errors += declared_claim_statuses(status.get(STATUSES) or [], old_status.get(STATUSES) or [])
    return errors + declared_pod_volumes(volume_health, old_status.get("volumeHealth") or [])


def _image_volumes(listed: list[Object], path: str) -> list[FieldError]:
    """Validate the references of the images that container statuses report for mounted image volumes.

    Args:
        listed: the container statuses.
        path: their field path.
    """
    errors: list[FieldError] = []
    for i, container in enumerate(listed):
        for j, mount in enumerate(container.get("volumeMounts") or ()):
            image = (mount.get("volumeStatus") or {}).get("image")
            at = f"{path}[{i}].volumeMounts[{j}].volumeStatus.imageVolumeStatus.imageRef"
            reference = (image or {}).get("imageRef") or ""
            if image is not None and not reference:
                errors.append(field.required(at, "imageRef must not be empty"))
            if len(reference.encode()) > _LONGEST_REFERENCE:
                errors.append(field.too_long(at, _LONGEST_REFERENCE))
    return errors


def _nominated(status: Object, old_status: Object, spec: Object) -> list[FieldError]:
    name = status.get("nominatedNodeName") or ""
    if not name or name == old_status.get("nominatedNodeName"):
        return []
    errors = dns_subdomain(name, "status.nominatedNodeName")
    if spec.get("nodeName") and feature_gates.enabled("ClearingNominatedNodeNameAfterBinding"):
        errors.append(
            field.forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")
        )
    return errors


def _claim_statuses(status: Object, spec: Object) -> list[FieldError]:
    claim_names = {c.get("name") for c in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    errors: list[FieldError] = []
    for i, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        at, name = f"status.resourceClaimStatuses[{i}]", claim.get("name") or ""
        if name not in claim_names:
            errors.append(field.invalid(f"{at}.name", name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            errors.append(field.duplicate(f"{at}.name", name))
        seen.add(name)
        if (claimed := claim.get("resourceClaimName")) is not None:
            errors += dns_subdomain(claimed, f"{at}.resourceClaimName")
    return errors


def _extended_claim(claim: Object | None, spec: Object, path: str) -> list[FieldError]:
    """Validate extendedResourceClaimStatus, which names the claim for extended resources that DRA devices provide.

    resourceClaimName is valid. There is at least one request mapping, each is unique, and names a container, an
    extended resource that the container requests, and a request.

    Args:
        claim: extendedResourceClaimStatus; None if it is not set.
        spec: the pod's spec.
        path: the field path of `claim`, for the errors.

    Upstream: pkg/apis/core/validation/validation.go, validatePodExtendedResourceClaimStatus
    """
    if claim is None:
        return []
    requests = {
        c.get("name") or "": (c.get("resources") or {}).get("requests") or {}
        for kind in ("initContainers", "containers")
        for c in spec.get(kind) or ()
    }
    mappings = claim.get("requestMappings") or []
    errors = [] if mappings else [field.required(f"{path}.requestMappings", "at least one request mapping is required")]
    seen: set[tuple[str, ...]] = set()
    for i, mapping in enumerate(mappings):
        at = f"{path}.requestMappings[{i}]"
        key = tuple(mapping.get(part) or "" for part in ("containerName", "resourceName", "requestName"))
        if key[0] not in requests:
            errors.append(field.invalid(f"{at}.containerName", key[0], f"must match the name of an entry in {_NAMES}"))
        elif key[1] not in requests[key[0]]:
            text = f"must match the extended resource name of an entry in {_REQUESTS}"
            errors.append(field.invalid(f"{at}.resourceName", key[1], text))
        errors += dns_label(key[2], f"{path}.requestName")
        if key in seen:
            parts = zip(("containerName", "resourceName", "requestName"), key, strict=True)
            errors += [field.duplicate(f"{at}.{part}", value) for part, value in parts]
        seen.add(key)
    name = claim.get("resourceClaimName") or ""
    return errors + (
        dns_subdomain(name, f"{path}.resourceClaimName") if name else [field.required(f"{path}.resourceClaimName")]
    )


def _addresses(status: Object, old_status: Object, name: str) -> list[FieldError]:
    """Validate the list of pod or host IPs: at most one for each IP family, and none invalid.

    Args:
        old_status: the stored status. The IPs in it are not validated again.
        name: the field of the list, "podIPs" or "hostIPs".
    """
    path, ips = f"status.{name}", status.get(name) or []
    values, stored = ([ip.get("ip") or "" for ip in listed.get(name) or ()] for listed in (status, old_status))
    errors = [
        error for i, value in enumerate(values) if value not in stored for error in address(value, f"{path}[{i}]")
    ]
    return errors + _dual_stack(values, ips, path) if len(values) > 1 else errors


def _dual_stack(values: list[str], ips: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    both, error_text = families(values)
    if error_text:
        errors.append(field.internal_error(path, f"failed to check for dual stack with error:{error_text}"))
    if not both or len(values) > 2:
        shown = internal_list("IPHolder", ips)
        errors.append(field.invalid(path, shown, "may specify no more than one IP for each IP family"))
    return errors


def _users(statuses: list[Object], spec: Object, path: str) -> list[FieldError]:
    system = (spec.get("os") or {}).get("name") or "linux"
    errors: list[FieldError] = []
    for i, status in enumerate(statuses):
        user = (status.get("user") or {}).get("linux")
        if user is None:
            continue
        at = f"{path}[{i}].user.linux"
        if system == "windows":
            errors.append(field.forbidden(at, "cannot be set for a windows pod"))
            continue
        errors += in_range(user.get("uid") or 0, 0, _MAX_UID, f"{at}.uid") + user_id(user.get("gid") or 0, f"{at}.gid")
        for j, group in enumerate(user.get("supplementalGroups") or ()):
            errors += user_id(group, f"{at}.supplementalGroups[{j}]")
    return errors


def _allocated(statuses: list[Object], containers: list[Object], kind: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    by_name = {c.get("name"): c for c in containers}
    for i, status in enumerate(statuses):
        listed = status.get("allocatedResourcesStatus") or []
        if listed and kind == "ephemeralContainers":
            errors.append(
                field.forbidden(f"{path}[{i}].allocatedResourcesStatus", "must not be specified in container status")
            )
            continue
        for j, resource in enumerate(listed):
            at = f"{path}[{i}].allocatedResourcesStatus[{j}]"
            container = by_name.get(status.get("name"))
            if container is not None:
                errors += _declared_by_container(resource.get("name") or "", container.get("resources") or {}, at)
            seen: set[str] = set()
            for k, one in enumerate(resource.get("resources") or ()):
                health, identity = one.get("health") or "", one.get("resourceID") or ""
                if health not in _HEALTH:
                    errors.append(field.not_supported(f"{at}.resources[{k}].health", health, _HEALTH))
                if identity in seen:
                    errors.append(field.duplicate(f"{at}.resources[{k}].resourceID", identity))
                seen.add(identity)
    return errors


def _declared_by_container(name: str, resources: Object, path: str) -> list[FieldError]:
    if not name.startswith("claim:"):
        if name in (resources.get("requests") or {}):
            return []
        return [field.invalid(f"{path}.name", name, "must match one of the container's resource requests")]
    claims = {
        f"claim:{c.get('name')}" + (f"/{c['request']}" if c.get("request") else "")
        for c in resources.get("claims") or ()
    }
    text = (
        "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
        "'claim:<claimName>'"
    )
    return [] if name in claims else [field.invalid(f"{path}.name", name, f"{text} if request is empty")]
