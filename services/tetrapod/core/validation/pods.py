"""Pod on create and update, and its ephemeral containers (upstream: ValidatePodCreate, ValidatePodUpdate)."""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.validation.containers import image_padding
from tetrapod.core.validation.differences import internal, internal_list, spec_difference
from tetrapod.core.validation.pod_annotations import MIRROR, annotation_changes, match_fields, pod_annotations
from tetrapod.core.validation.pod_spec import pod_spec
from tetrapod.core.validation.scheduling import tolerations
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError, go_quote
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
    spec = obj.get("spec") or {}
    errors = metadata_and_spec(obj)
    if spec.get("ephemeralContainers"):
        errors.append(field.forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(field.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors + match_fields(obj["metadata"], spec, "spec")


def metadata_and_spec(obj: Object) -> list[FieldError]:
    """What holds of a pod at any time."""
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    errors = pod_annotations(meta, spec, "metadata.annotations") if meta.get("annotations") else []
    errors += pod_spec(spec, "spec", pod=True, pod_name=meta.get("name") or "")
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
    errors = metadata_and_spec(new)
    errors += annotation_changes(new["metadata"], old["metadata"], "metadata.annotations")
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for kind in ("containers", "initContainers"):
        now, had = spec.get(kind) or [], before.get(kind) or []
        if len(now) != len(had):
            return [*errors, field.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")]
        for i, container in enumerate(now):
            if not container.get("image"):
                errors.append(field.required(f"spec.{kind}[{i}].image"))
            errors += image_padding(container, f"spec.{kind}[{i}]")
    wrong, stop = _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    errors += wrong
    if stop:
        return errors
    errors += _tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    errors += _gates(spec.get("schedulingGates") or [], before.get("schedulingGates") or [])
    if spec == before:
        return errors
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        errors += _gated(munged, before)
    was = internal("PodSpec", before)
    if internal("PodSpec", munged) != was:
        text = f"pod updates may not change fields other than {','.join(_UPDATABLE)}\n{spec_difference('PodSpec', before, munged)}"
        errors.append(field.forbidden("spec", text))
    return errors


def _deadline(new: int | None, old: int | None) -> tuple[list[FieldError], bool]:
    """It may be set, and lowered. The second says that nothing else is looked at."""
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

    kept = [bare(t) for t in new]
    if any(bare(t) not in kept for t in old):
        return [field.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]
    return tolerations(new, "spec.tolerations")


def _gates(new: list[Object], old: list[Object]) -> list[FieldError]:
    known = {gate.get("name") for gate in old}
    return [
        field.forbidden(
            f"spec.schedulingGates[{i}].name", f"only deletion is allowed, but found new scheduling gate '{gate.get('name') or ''}'"
        )
        for i, gate in enumerate(new)
        if gate.get("name") not in known
    ]


def _munged(spec: Object, before: Object) -> Object:
    """The new spec with all that may change as it was."""
    munged = dict(spec)
    for kind in ("containers", "initContainers"):
        if munged.get(kind):
            had = before.get(kind) or []
            munged[kind] = [{**c, "image": had[i].get("image", "")} for i, c in enumerate(munged[kind])]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged.pop(name, None)
        if name in before:
            munged[name] = before[name]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return munged


def _gated(munged: Object, before: Object) -> list[FieldError]:
    """While a gate holds a pod back, where it may run can be narrowed. What is looked at here is put back into `munged`."""
    errors: list[FieldError] = []
    new, old = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if new != old:
        if any(new.get(key) != value for key, value in old.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(field.invalid("spec.nodeSelector", dict(sorted(new.items())) or None, text))
        munged.pop("nodeSelector", None)
        if old:
            munged["nodeSelector"] = old
    affinity, had = munged.get("affinity") or {}, before.get("affinity") or {}
    if affinity.get("nodeAffinity") == had.get("nodeAffinity"):
        return errors
    errors += _node_affinity(affinity.get("nodeAffinity") or {}, had.get("nodeAffinity") or {})
    kept = {k: v for k, v in affinity.items() if k != "nodeAffinity"}
    if had.get("nodeAffinity") is not None:
        kept["nodeAffinity"] = had["nodeAffinity"]
    munged.pop("affinity", None)
    if kept or before.get("affinity") is not None:
        munged["affinity"] = kept
    return errors


def _node_affinity(new: Object, old: Object) -> list[FieldError]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    had = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    now = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if had and len(had) != len(now):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [field.invalid(path, internal_list("NodeSelectorTerm", now or None), text)]
    return [
        field.invalid(f"{path}[{i}]", internal("NodeSelectorTerm", now[i]), "only additions are allowed (no mutations or deletions)")
        for i, term in enumerate(had)
        if not _only_additions(now[i], term)
    ]


def _only_additions(new: Object, old: Object) -> bool:
    parts = ("matchExpressions", "matchFields")
    if not any(old.get(part) for part in parts) and any(new.get(part) for part in parts):
        return False  # an empty term matches nothing, so filling it in would widen
    return all((new.get(part) or [])[: len(old.get(part) or [])] == (old.get(part) or []) for part in parts)


def validate_ephemeral_update(new: Object, old: Object) -> list[FieldError]:
    """Ephemeral containers are only added."""
    path = "spec.ephemeralContainers"
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [field.forbidden("[]", "static pods do not support ephemeral containers")]
    errors = metadata_and_spec(new) + annotation_changes(new["metadata"], old["metadata"], "metadata.annotations")
    now: dict[Any, Object] = {c.get("name"): c for c in (new.get("spec") or {}).get("ephemeralContainers") or ()}
    for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
        name = go_quote(container.get("name") or "")
        changed = now.get(container.get("name"))
        if changed is None:
            errors.append(field.forbidden(path, f"existing ephemeral containers {name} may not be removed\n"))
        elif internal("EphemeralContainer", changed) != internal("EphemeralContainer", container):
            difference = spec_difference("EphemeralContainer", container, changed)
            errors.append(field.forbidden(path, f"existing ephemeral containers {name} may not be changed\n{difference}"))
    return errors
