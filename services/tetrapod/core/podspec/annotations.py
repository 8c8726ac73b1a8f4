"""Validation of pod annotations that Kubernetes interprets, and their comparison with the fields that replaced them.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodSpecificAnnotations and related functions.
"""

from __future__ import annotations

import json
from typing import Final

from tetrapod.core.podspec.scheduling import tolerations
from tetrapod.core.podspec.security import all_containers, app_armor
from tetrapod.core.podspec.stored import allows_comparisons, stored_annotation
from tetrapod.core.validation.paths import descending
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.json_syntax import explain
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
_LOCALHOST: Final = "localhost/"
_NAMED_PROFILES: Final = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault"}
_MATCH: Final = "type in annotation and field must match"


def pod_annotations(meta: Object, spec: Object, path: str) -> list[FieldError]:
    """Validate the annotations that Kubernetes defines for pods and pod templates.

    A mirror pod has a nodeName, tolerations are valid, and the deletion cost is an int32 unless the stored one is not.
    Seccomp and AppArmor profiles are known, and AppArmor annotations name containers of the pod.

    Args:
        meta: its metadata.
        spec: its spec.
        path: the field path of the annotations, for errors.
    """
    annotations = meta.get("annotations")
    if not annotations:
        return []
    errors: list[FieldError] = []
    if MIRROR in annotations and not spec.get("nodeName"):
        errors.append(
            field.invalid(
                f"{path}[{MIRROR}]", annotations[MIRROR], "must set spec.nodeName if mirror pod annotation is set"
            )
        )
    if annotations.get(TOLERATIONS):
        errors += _tolerations(annotations[TOLERATIONS], path)
    checked = feature_gates.enabled("PodDeletionCost") and DELETION_COST in annotations
    stored_cost = stored_annotation(DELETION_COST)
    accepts_any = stored_cost is not None and not _is_int32(stored_cost)
    if checked and not accepts_any and not _is_int32(annotations[DELETION_COST]):
        errors.append(field.invalid(f"{path}[{DELETION_COST}]", annotations[DELETION_COST], "must be a 32bit integer"))
    if _SECCOMP_POD in annotations:
        errors += _seccomp_profile(annotations[_SECCOMP_POD], f"{path}.{_SECCOMP_POD}")
    names = {c.get("name") for c, _ in all_containers(spec, "")}
    for key, value in annotations.items():
        if key.startswith(_SECCOMP_CONTAINER):
            errors += _seccomp_profile(value, f"{path}.{key}")
        elif key.startswith(APP_ARMOR):
            if (name := key.removeprefix(APP_ARMOR)) not in names:
                errors.append(field.invalid(f"{path}[{key}]", name, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith(_LOCALHOST):
                errors.append(
                    field.invalid(f"{path}[{key}]", value, f"invalid AppArmor profile name: {go_quote(value)}")
                )
    return errors


def _tolerations(written: str, path: str) -> list[FieldError]:
    if detail := explain(written.encode()):
        return [field.invalid(path, TOLERATIONS, detail)]
    listed = json.loads(written)
    if not isinstance(listed, list):
        return []
    return tolerations(listed, f"{path}.{TOLERATIONS}", compares=allows_comparisons())


def _is_int32(value: str) -> bool:
    """Return whether a text is a 32-bit integer; as upstream, a plus sign and leading zeros are not allowed."""
    try:
        number = int(value)
    except ValueError:
        return False
    return str(number) == value and -(2**31) <= number < 2**31


def _seccomp_profile(value: str, path: str) -> list[FieldError]:
    if value in ("runtime/default", "docker/default", "unconfined"):
        return []
    if value.startswith(_LOCALHOST):
        return descending(value.removeprefix(_LOCALHOST), path)
    return [field.invalid(path, value, "must be a valid seccomp profile")]


def annotation_changes(new: Object, old: Object) -> list[FieldError]:
    """Reject added, changed or removed AppArmor and mirror pod annotations.

    Args:
        new: the new metadata.
        old: the stored metadata.
    """
    new_annotations, old_annotations = new.get("annotations") or {}, old.get("annotations") or {}
    errors: list[FieldError] = []
    for key, value in old_annotations.items():
        if new_annotations.get(key) == value:
            continue
        if key.startswith(APP_ARMOR):
            errors.append(
                field.forbidden(f"metadata.annotations[{key}]", "may not remove or update AppArmor annotations")
            )
        if key == MIRROR:
            errors.append(
                field.forbidden(f"metadata.annotations[{key}]", "may not remove or update mirror pod annotation")
            )
    for key in new_annotations.keys() - old_annotations.keys():
        if key.startswith(APP_ARMOR):
            errors.append(field.forbidden(f"metadata.annotations[{key}]", "may not add AppArmor annotations"))
        if key == MIRROR:
            errors.append(field.forbidden(f"metadata.annotations[{key}]", "may not add mirror pod annotation"))
    return errors


def match_fields(meta: Object, spec: Object, path: str) -> list[FieldError]:
    """Reject seccomp and AppArmor profiles that an annotation and a field of a security context set differently.

    Profiles that only an annotation or only a field sets are accepted. AppArmor profiles of Windows pods are ignored.

    Args:
        meta: the metadata of a pod or pod template.
        spec: its spec.
        path: the field path of the spec, for the errors.
    """
    annotations = meta.get("annotations")
    if not annotations or not any(
        key.startswith((APP_ARMOR, _SECCOMP_CONTAINER)) or key == _SECCOMP_POD for key in annotations
    ):
        return []
    pod = spec.get("securityContext") or {}
    errors: list[FieldError] = []
    if pod.get("seccompProfile") and _SECCOMP_POD in annotations:
        errors += _matches_field(
            "seccomp", annotations[_SECCOMP_POD], pod["seccompProfile"], f"{path}.securityContext.seccompProfile"
        )
    containers = list(all_containers(spec, path))
    for container, at in containers:
        profile = (container.get("securityContext") or {}).get("seccompProfile")
        annotation = annotations.get(_SECCOMP_CONTAINER + (container.get("name") or ""))
        if profile and annotation is not None:
            errors += _matches_field("seccomp", annotation, profile, f"{at}.securityContext.seccompProfile")
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for container, at in containers:
        profile = (container.get("securityContext") or {}).get("appArmorProfile") or pod.get("appArmorProfile")
        annotation = annotations.get(APP_ARMOR + (container.get("name") or ""))
        if profile and annotation is not None:
            errors += _matches_field("apparmor", annotation, profile, f"{at}.securityContext.appArmorProfile")
    return errors


def _matches_field(profile_kind: str, annotation: str, profile: Object, path: str) -> list[FieldError]:
    kind = profile.get("type")
    if kind == "Localhost":
        if not annotation.startswith(_LOCALHOST):
            return [field.forbidden(f"{path}.type", f"{profile_kind} {_MATCH}")]
        if profile.get("localhostProfile") != annotation.removeprefix(_LOCALHOST):
            return [
                field.forbidden(
                    f"{path}.localhostProfile", f"{profile_kind} profile in annotation and field must match"
                )
            ]
        return []
    allowed = {
        "Unconfined": ("unconfined",),
        "RuntimeDefault": ("runtime/default", "docker/default" if profile_kind == "seccomp" else ""),
    }
    if kind in allowed and annotation not in allowed[kind]:
        return [field.forbidden(f"{path}.type", f"{profile_kind} {_MATCH}")]
    return []


def app_armor_field(written: str) -> Object | None:
    """Return the value of appArmorProfile that means the same as an AppArmor annotation, or None if that is invalid."""
    if written in _NAMED_PROFILES:
        return {"type": _NAMED_PROFILES[written]}
    if not written.startswith(_LOCALHOST) or written == _LOCALHOST:
        return None
    profile = {"type": "Localhost", "localhostProfile": written.removeprefix(_LOCALHOST)}
    return None if app_armor(profile, "") else profile
