"""Validation of Pod on create and update, and of its ephemeral containers.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodCreate and ValidatePodUpdate.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.podspec.annotations import MIRROR, annotation_changes, match_fields, pod_annotations
from tetrapod.core.podspec.containers import image_padding
from tetrapod.core.podspec.scheduling import tolerations
from tetrapod.core.podspec.stored import allows_comparisons
from tetrapod.core.podspec.validation import pod_spec
from tetrapod.core.validation.differences import internal, internal_list, spec_difference
from tetrapod.machinery import field
from tetrapod.machinery.equality import json_key, same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.names import range_text

_UPDATABLE: Final = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MAX_INT32: Final = 2**31 - 1
_NO_TOKEN: Final = "must not be specified when serviceAccountName is not set"


def validate(obj: Object) -> list[FieldError]:
    """Validate a new Pod, which must not have ephemeral containers, nor a node together with scheduling gates.

    The rules of `metadata_and_spec` apply, and annotations and fields for seccomp and AppArmor must not contradict each
    other.
    """
    spec = obj.get("spec") or {}
    errors = metadata_and_spec(obj)
    if spec.get("ephemeralContainers"):
        errors.append(field.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(field.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors + match_fields(obj["metadata"], spec, "spec")


def metadata_and_spec(obj: Object) -> list[FieldError]:
    """Validate the rules for a pod's annotations and spec that apply to creates and all updates.

    They are those of `pod_annotations` and `pod_spec`. Projected tokens need a service account, and images must not be
    padded with white space.
    """
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    errors = pod_annotations(meta, spec, "metadata.annotations") if meta.get("annotations") else []
    mirror = MIRROR in (meta.get("annotations") or {})
    errors += pod_spec(spec, "spec", pod=True, pod_name=meta.get("name") or "", mirror=mirror)
    if not spec.get("serviceAccountName"):
        for i, volume in enumerate(spec.get("volumes") or ()):
            for j, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    path = f"spec.volumes[{i}].projected.sources[{j}].serviceAccountToken"
                    errors.append(field.forbidden(path, _NO_TOKEN))
    for kind in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(kind) or ()):
            errors += image_padding(container, f"spec.{kind}[{i}]")
    return errors


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated Pod.

    In the spec, only these may change: images, activeDeadlineSeconds (set or lowered), tolerations (added), scheduling
    gates (removed) and, while there are gates, node selector and node affinity (narrowed).
    """
    errors = metadata_and_spec(new)
    errors += annotation_changes(new["metadata"], old["metadata"])
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    for kind in ("containers", "initContainers"):
        new_containers, old_containers = spec.get(kind) or [], old_spec.get(kind) or []
        if len(new_containers) != len(old_containers):
            return [*errors, field.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
        for i, container in enumerate(new_containers):
            if not container.get("image"):
                errors.append(field.required(f"spec.{kind}[{i}].image"))
            errors += image_padding(container, f"spec.{kind}[{i}]")
    deadline_errors, stop = _deadline(spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds"))
    errors += deadline_errors
    if stop:
        return errors
    errors += _tolerations(spec.get("tolerations") or [], old_spec.get("tolerations") or [])
    errors += _gates(spec.get("schedulingGates") or [], old_spec.get("schedulingGates") or [])
    if spec == old_spec:
        return errors
    restored_spec = _with_mutable_fields_restored(spec, old_spec)
    if old_spec.get("schedulingGates"):
        errors += _gated(restored_spec, old_spec)
    if not same(internal("PodSpec", restored_spec), internal("PodSpec", old_spec)):
        text = (
            "pod updates may not change fields other than "
            f"{','.join(_UPDATABLE)}\n{spec_difference('PodSpec', old_spec, restored_spec)}"
        )
        errors.append(field.forbidden("spec", text))
    return errors


def _deadline(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    """Validate a change of activeDeadlineSeconds, which may be set or lowered but not removed.

    Returns:
        The errors, and whether the validation of the update must stop with them, as upstream's does.
    """
    path = "spec.activeDeadlineSeconds"
    if new is None:
        text = "must not update from a positive integer to nil value"
        return ([field.invalid(path, None, text)] if old is not None else []), False
    if not 0 <= new <= _MAX_INT32:
        return [field.invalid(path, new, range_text(0, _MAX_INT32))], True
    if old is not None and old < new:
        return [field.invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _tolerations(new: list[Object], old: list[Object]) -> list[FieldError]:
    def bare(toleration: Object) -> Object:
        return {k: v for k, v in toleration.items() if k != "tolerationSeconds" and v not in (None, "")}

    new_keys = {json_key(bare(t)) for t in new}
    if any(json_key(bare(t)) not in new_keys for t in old):
        return [
            field.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        ]
    return tolerations(new, "spec.tolerations", compares=allows_comparisons())


def _gates(new: list[Object], old: list[Object]) -> list[FieldError]:
    added = {gate.get("name") or "": i for i, gate in enumerate(new)}  # as upstream, the last one of each name
    for gate in old:
        added.pop(gate.get("name") or "", None)
    text = "only deletion is allowed, but found new scheduling gate '{}'"
    return [field.forbidden(f"spec.schedulingGates[{i}].name", text.format(name)) for name, i in added.items()]


def _with_mutable_fields_restored(spec: Object, old_spec: Object) -> Object:
    """Return a copy of the new spec with the old values of all fields that may change."""
    restored_spec = dict(spec)
    for kind in ("containers", "initContainers"):
        if restored_spec.get(kind):
            old_containers = old_spec.get(kind) or []
            restored_spec[kind] = [
                {**c, "image": old_containers[i].get("image", "")} for i, c in enumerate(restored_spec[kind])
            ]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        restored_spec.pop(name, None)
        if name in old_spec:
            restored_spec[name] = old_spec[name]
    if (old_spec.get("terminationGracePeriodSeconds") or 0) < 0 and restored_spec.get(
        "terminationGracePeriodSeconds"
    ) == 1:
        restored_spec["terminationGracePeriodSeconds"] = old_spec["terminationGracePeriodSeconds"]
    return restored_spec


def _gated(restored_spec: Object, old_spec: Object) -> list[FieldError]:
    """Validate changes of node selector and node affinity, which may be narrowed while the pod has scheduling gates.

    `restored_spec` gets the old values of both, so that the comparison that follows ignores them.

    Args:
        restored_spec: the new spec, changed in place.
        old_spec: the stored spec.
    """
    errors: list[FieldError] = []
    new, old = restored_spec.get("nodeSelector") or {}, old_spec.get("nodeSelector") or {}
    if new != old:
        if any(new.get(key) != value for key, value in old.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(field.invalid("spec.nodeSelector", dict(sorted(new.items())) or None, text))
        restored_spec.pop("nodeSelector", None)
        if old:
            restored_spec["nodeSelector"] = old
    affinity, old_affinity = restored_spec.get("affinity") or {}, old_spec.get("affinity") or {}
    if affinity.get("nodeAffinity") == old_affinity.get("nodeAffinity"):
        return errors
    errors += _node_affinity(affinity.get("nodeAffinity") or {}, old_affinity.get("nodeAffinity") or {})
    restored = {k: v for k, v in affinity.items() if k != "nodeAffinity"}
    if old_affinity.get("nodeAffinity") is not None:
        restored["nodeAffinity"] = old_affinity["nodeAffinity"]
    restored_spec.pop("affinity", None)
    if restored or old_spec.get("affinity") is not None:
        restored_spec["affinity"] = restored
    return errors


def _node_affinity(new: Object, old: Object) -> list[FieldError]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    old_terms = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    shown = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms")
    new_terms = shown or []
    if old_terms and len(old_terms) != len(new_terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [field.invalid(path, internal_list("NodeSelectorTerm", shown), text)]
    return [
        field.invalid(
            f"{path}[{i}]",
            internal("NodeSelectorTerm", new_terms[i]),
            "only additions are allowed (no mutations or deletions)",
        )
        for i, term in enumerate(old_terms)
        if not _only_additions(new_terms[i], term)
    ]


def _only_additions(new: Object, old: Object) -> bool:
    parts = ("matchExpressions", "matchFields")
    if not any(old.get(part) for part in parts) and any(new.get(part) for part in parts):
        return False  # an empty term matches no node, so adding requirements would widen it
    return all((new.get(part) or [])[: len(old.get(part) or [])] == (old.get(part) or []) for part in parts)


def validate_ephemeral_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an update of `pods/ephemeralcontainers`, which may only add ephemeral containers.

    Existing ones can neither change nor be removed. Static pods support none.
    """
    path = "spec.ephemeralContainers"
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [field.forbidden("[]", "static pods do not support ephemeral containers")]
    errors = metadata_and_spec(new) + annotation_changes(new["metadata"], old["metadata"])
    new_by_name: dict[Any, Object] = {
        c.get("name"): c for c in (new.get("spec") or {}).get("ephemeralContainers") or ()
    }
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = go_quote(container.get("name") or "")
        changed = new_by_name.get(container.get("name"))
        if changed is None:
            errors.append(field.forbidden(path, f"existing ephemeral containers {name} may not be removed\n"))
        elif not same(internal("EphemeralContainer", changed), internal("EphemeralContainer", container)):
            difference = spec_difference("EphemeralContainer", container, changed)
            errors.append(
                field.forbidden(path, f"existing ephemeral containers {name} may not be changed\n{difference}")
            )
    return errors
